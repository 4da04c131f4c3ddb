class A {
    void f() {
        break 1;
    }
}
