a = 3in b
