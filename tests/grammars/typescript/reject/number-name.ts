const 1a = 2
