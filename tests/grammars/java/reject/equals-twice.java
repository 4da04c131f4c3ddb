class A {
    void f() {
        int a = = 2;
    }
}
