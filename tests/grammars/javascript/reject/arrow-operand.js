a || b => c
