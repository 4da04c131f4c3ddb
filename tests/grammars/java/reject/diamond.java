class A {
    List<> x;
}
