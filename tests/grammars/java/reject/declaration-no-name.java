class A {
    void f() {
        int = 3;
    }
}
