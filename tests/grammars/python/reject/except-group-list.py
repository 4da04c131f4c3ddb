try:
    run()
except* ValueError, KeyError,:
    pass
except* (OSError, TypeError) as error:
    raise
