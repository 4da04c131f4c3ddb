let a = = 3
