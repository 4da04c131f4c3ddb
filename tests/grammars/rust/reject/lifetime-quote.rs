fn f<'a'>() {}
