if a; b; fi
