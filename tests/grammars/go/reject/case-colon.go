package p
func f() { switch x { case 1 return } }
