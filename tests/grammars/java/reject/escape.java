class A {
String s = "\q";
}
