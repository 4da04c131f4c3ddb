try:
    run()
except ValueError, KeyError as error:
    pass
