foo();
