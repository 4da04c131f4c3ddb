class A {
    void f() {
        import a.b;
    }
}
