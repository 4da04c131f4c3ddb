class A {
    void f() {
        a;
    }
}
