class A {
    void f() {
        public int x = 1;
    }
}
