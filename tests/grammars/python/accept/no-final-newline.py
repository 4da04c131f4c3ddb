def f():
    x