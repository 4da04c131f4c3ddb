if a; then b; fi fi
