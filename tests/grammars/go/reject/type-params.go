package p
func f[T](x T) {}
