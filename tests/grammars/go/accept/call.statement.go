f(x, func() {
	return
})