echo "a
