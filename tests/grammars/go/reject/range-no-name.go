package p
func f() { for a[0] := range b {} }
