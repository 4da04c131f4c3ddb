class A {
    void f() {
        for (int i : ) { }
    }
}
