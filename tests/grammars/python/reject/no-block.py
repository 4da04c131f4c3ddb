if x:
y
