class A {
    void f() {
        x = (a b, c) -> d;
    }
}
