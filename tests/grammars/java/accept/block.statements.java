    int a = 1;
    foo(a);
    if (a > 1) {
        return;
    }
