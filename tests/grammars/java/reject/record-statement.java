record A(int x) { f(); }
