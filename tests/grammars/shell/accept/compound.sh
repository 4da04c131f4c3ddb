if [ -f "$1" ]; then cat "$1"; elif [[ -d $1 && ! -L $1 || ( $1 == *.d ) ]]
then ls "$1"
else
  # nothing
  :
fi
for i in 1 2 "$x" $(seq 3); do echo $i; done >log 2>&1
for x; do :; done
for x do :; done
for ((i = 0; i < 10; i++)); do ((sum += i)); done
for y in \
  a b
do
  echo "$y"
done
while true; do break; done
until ((x > 3)); do ((x++)); done | cat
select o in a b; do echo "$o"; done
case $1 in
  -h|--help) usage ;;
  (a) ;;
  "b c" | *[!0-9]*)
    echo x
    ;;
  *) exit 1
esac
case "$x" in a) echo;; b) ls &
  ;; c) ls; ;; esac
f() { echo; }
g () (
  exit
)
function h { local x=1; return $x; }
function k() {
  echo
} >&2
my-func() if true; then :; fi
{ echo a; echo b; } 2>/dev/null
if [[ $x =~ ^[0-9]+(a|b)$ ]]; then :; fi
[[ $x == @(a|b)* ]] && echo
[[ $a -lt 3 && $b > c ]]
