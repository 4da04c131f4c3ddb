cat <<EOF
$x 'it is open
 EOF
EOFX
EOF
cat > out <<'END' | sort
if then `(
END

if true; then
	cat <<-EOF >&2
		indented
	EOF
	while read -r x; do :; done <<-"EOT"
	a
	EOT
fi
x=$(cat <<EOF
text
EOF
)
