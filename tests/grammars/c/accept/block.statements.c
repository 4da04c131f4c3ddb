int x = 1;
if (x) f();
