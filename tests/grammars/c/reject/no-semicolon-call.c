int f(void) { f(x) g(y); }
