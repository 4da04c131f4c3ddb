package p

var x = a + +b - -c & ^d &^ e && f || !g == h< -i
var y = a / *b
var z = a /* c */ / b // d
var w = -a*-b + <-c<<3>>2%5|6^7
var v = f(a)[1:2:3].g.(T)(h...)
var u = p.
	q().
	r()
var t = (*T).M
var s = []byte("x")[0] + interface{}(1).(int) + struct{ a int }{1}.a
var r = func(a, b int) (c int) { return }(1, 2)
