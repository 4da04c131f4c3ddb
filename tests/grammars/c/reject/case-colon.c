int f(void) { switch (x) { case 1 break; } }
