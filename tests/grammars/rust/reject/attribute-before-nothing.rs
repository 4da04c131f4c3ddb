struct S {
    #[cfg(x)]
}
