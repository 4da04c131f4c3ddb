package p
var x = 3x
