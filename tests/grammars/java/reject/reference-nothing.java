class A {
    void f() {
        x = A::;
    }
}
