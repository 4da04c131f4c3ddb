if x) {}
