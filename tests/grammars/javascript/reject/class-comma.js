class A { a() {}, b() {} }
