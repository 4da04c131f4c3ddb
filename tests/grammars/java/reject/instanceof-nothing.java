class A {
    void f() {
        b = x instanceof;
    }
}
