class A {
public;
}
