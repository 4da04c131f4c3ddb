int f(void) { g(a,); }
