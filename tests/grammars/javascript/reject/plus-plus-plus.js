a = b ++ c
