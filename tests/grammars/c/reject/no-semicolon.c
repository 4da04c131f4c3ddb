int f(void) { x = 1 y = 2; }
