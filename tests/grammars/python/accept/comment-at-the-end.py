if x:
    y
    # comment