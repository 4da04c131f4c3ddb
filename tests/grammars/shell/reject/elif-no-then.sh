if a; then b; elif c; d; fi
