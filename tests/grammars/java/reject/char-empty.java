class A {
char c = '';
}
