package p

var x = h<-i
