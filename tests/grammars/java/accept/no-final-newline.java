interface A { }
// no line break