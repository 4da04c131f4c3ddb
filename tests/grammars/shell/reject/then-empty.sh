if a; then fi
