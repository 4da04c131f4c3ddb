f() { echo
