class A {
    void f() {
        x = 1.foo();
    }
}
