fn f(&self) {}
