cat <<'EOF
abc
EOF
