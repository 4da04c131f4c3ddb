package p
var x = "\q"
