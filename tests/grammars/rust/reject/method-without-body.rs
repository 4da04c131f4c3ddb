struct S;
impl S {
    fn f(&self);
}
