a = b,
