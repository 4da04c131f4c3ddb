class A {
    void f() {
        return a b;
    }
}
