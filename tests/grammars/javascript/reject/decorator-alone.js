@a b()
