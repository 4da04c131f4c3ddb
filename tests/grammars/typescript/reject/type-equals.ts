type A string
