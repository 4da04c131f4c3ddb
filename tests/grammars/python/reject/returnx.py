def f():
    returnx y
