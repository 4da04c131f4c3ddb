package p
var x = 1 // the end