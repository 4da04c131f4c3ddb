class A {
if (a) { }
}
