for x in y:
    z
elif a:
    b
