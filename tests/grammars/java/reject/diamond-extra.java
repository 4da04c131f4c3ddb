class A {
List<<String>> x;
}
