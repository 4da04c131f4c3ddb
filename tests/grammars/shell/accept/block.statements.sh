  echo a
  if b; then
    c
  fi
