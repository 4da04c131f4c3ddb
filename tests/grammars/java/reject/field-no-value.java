class A {
int x = ;
}
