fn f<T(x: T) {}
