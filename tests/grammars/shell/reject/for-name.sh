for "$x" in a; do b; done
