then a
