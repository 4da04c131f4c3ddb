if a; then b; else fi
