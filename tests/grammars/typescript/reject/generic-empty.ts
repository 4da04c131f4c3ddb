function f<T extends>() { }
