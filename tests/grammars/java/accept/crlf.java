package x;

class A {
  int x = 1; // c
  /** doc */ void f() { }
}
