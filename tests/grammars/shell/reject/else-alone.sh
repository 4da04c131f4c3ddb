else a
