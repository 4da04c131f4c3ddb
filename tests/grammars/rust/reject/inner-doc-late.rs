fn f() {}
//! Late.
