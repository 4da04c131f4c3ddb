/* a /* b */
fn f() {}
