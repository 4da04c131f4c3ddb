f!(a)
fn g() {}
