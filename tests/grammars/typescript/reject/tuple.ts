type A = [a: ]
