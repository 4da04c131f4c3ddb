f(x, y);
