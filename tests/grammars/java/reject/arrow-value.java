class A {
    void f() {
        switch (a) { case 1 -> 2; }
    }
}
