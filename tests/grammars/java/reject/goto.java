class A {
    void f() {
        goto a;
    }
}
