a = { if }
