enum A { a: 1 }
