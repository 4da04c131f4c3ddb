class A {
    void f() {
        f() = 3;
    }
}
