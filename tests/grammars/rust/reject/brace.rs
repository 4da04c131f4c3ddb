fn main() { if x { }
