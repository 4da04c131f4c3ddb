class A { void f() { }
