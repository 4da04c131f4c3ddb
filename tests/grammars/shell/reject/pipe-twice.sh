a | | b
