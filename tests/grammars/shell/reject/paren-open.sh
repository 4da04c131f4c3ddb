(a
