class A {
    void f() {
        switch (a) { case 1 -> f(); case 2: g(); }
    }
}
