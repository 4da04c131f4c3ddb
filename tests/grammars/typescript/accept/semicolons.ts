let a = 1
let b = a
++b
a
  .then(x => x)
  .catch(() => {})
const f = function () {}
f
(1)
if (a) b
else c
do x(); while (y) z()
while (a--) ;
for (;;) break
outer: for (const k in o) continue outer
function g() { return }
function h() {
  return // nothing
  a
}
{ a; b }
;[1, 2].forEach(f)
;
throw new Error(`x`)
