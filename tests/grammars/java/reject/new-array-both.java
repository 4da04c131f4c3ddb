class A {
    void f() {
        x = new int[2] {1, 2};
    }
}
