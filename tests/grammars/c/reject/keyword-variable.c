int f(void) { while = 1; }
