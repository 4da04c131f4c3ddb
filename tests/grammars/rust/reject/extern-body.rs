extern "C" { fn f() {} }
