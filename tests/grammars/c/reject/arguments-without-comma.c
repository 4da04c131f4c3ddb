int f(void) { g(a b); }
