int f(void { }
