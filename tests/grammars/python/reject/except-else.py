try:
    x
else:
    y
