class A {
foo();
}
