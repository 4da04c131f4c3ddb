int f(void) { for (i = 0; i < 3) ; }
