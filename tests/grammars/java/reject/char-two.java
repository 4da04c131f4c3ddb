class A {
char c = 'ab';
}
