class A { }}
