let a: Array<string = 1
