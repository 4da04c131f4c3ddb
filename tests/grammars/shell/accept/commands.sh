#!/bin/bash
# Comments, pipelines and lists.
set -euo pipefail
PATH=/bin:$PATH LANG=C make -j2 "$@" 2>&1 | tee log >/dev/null; echo $? # end
! grep -q 'it''s' <<<"$text" && echo yes || { echo no; exit 1; }
a=(one "two three" [4]=x
   # a comment
   $(ls)) b=$((1 + (2 * 3)))
declare -A map=([k]="v") other
echo "${a[@]}" "${x:-"y z"}" "$(dirname "$0")/$(basename "${1%.*}" .sh)" `date +%s` $'tab\t\'' a\ b \
  --long $# $? $$ "${#a[@]}" ~/x *.{c,h} [a-z]? \(
diff <(sort a) <(sort b) > >(cat) &
wait; cmd &> file; >out 2>err
echo a#b ${x#*/} "a # b" '# c'
(cd /tmp && ls) | while read -r line; do echo "$line"; done < <(find . -name '*.c')
x=$(
  cat file
  if true; then echo "in"; fi
)y
time ls
