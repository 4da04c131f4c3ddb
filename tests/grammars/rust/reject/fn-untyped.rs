fn f(x) {}
