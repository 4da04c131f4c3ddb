function f() { return return }
