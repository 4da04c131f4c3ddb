class A {
    void f() {
        x = a[1;
    }
}
