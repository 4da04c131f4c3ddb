class A {
int x = 089;
}
