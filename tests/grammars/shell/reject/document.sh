cat <<EOF
abc
