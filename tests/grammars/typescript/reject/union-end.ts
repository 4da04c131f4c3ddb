type A = B |
