fn f() {}
#![late]
