let a: = 1
