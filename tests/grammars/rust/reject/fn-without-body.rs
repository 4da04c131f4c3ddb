fn f();
