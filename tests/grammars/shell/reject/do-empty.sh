while a; do done
