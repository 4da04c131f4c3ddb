x = 1a
