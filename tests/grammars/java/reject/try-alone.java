class A {
    void f() {
        try { }
    }
}
