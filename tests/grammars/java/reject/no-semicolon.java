class A {
    void f() {
        foo()
    }
}
