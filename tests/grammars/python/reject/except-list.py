try:
    run()
except ValueError, KeyError:
    pass
