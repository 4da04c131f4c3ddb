function f(a?: ) { }
