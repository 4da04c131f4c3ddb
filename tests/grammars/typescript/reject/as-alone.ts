a = b as
