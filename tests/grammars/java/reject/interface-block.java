class A {
interface B { { } }
}
