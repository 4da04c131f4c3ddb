class A {
public f(int x);
}
