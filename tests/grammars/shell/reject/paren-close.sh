a)
