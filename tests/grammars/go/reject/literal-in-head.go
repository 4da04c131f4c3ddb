package p
func f() { if x == T{1, 2} { } }
