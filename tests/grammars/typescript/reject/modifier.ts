class A { private private }}
