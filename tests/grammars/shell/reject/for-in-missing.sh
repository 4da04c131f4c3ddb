for x a b; do c; done
