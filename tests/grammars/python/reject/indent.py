x
    y
