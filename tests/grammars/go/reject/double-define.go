package p
func f() { x := := 3 }
