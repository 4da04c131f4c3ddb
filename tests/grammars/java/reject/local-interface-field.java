class A {
interface B { int x; }
}
