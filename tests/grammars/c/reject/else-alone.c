int f(void) { else x; }
