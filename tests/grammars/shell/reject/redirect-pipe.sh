a > | b
