var a, b = 1, { c, d: e = 2, ...f } = g, [h, , i = 3, ...j] = k;
if (a) b; else if (c) d; else e
if (a) { b } else if (c) { d } else { e }
if (a) ; else b
if (a) if (b) c; else d
for (var i = 0, n = a.length; i < n; i++) x
for (let i = 0; ; ) { break }
for (a in b) ; for (var c in d) ; for (const [k, v] of e) f()
for (x.y of z) {}
for (i = b ? 1 : 2; i;) ;
while (a) { continue }
do { x } while (y)
do x
while (y);
switch (a) {
  case 1: case 'b':
    c
    break
  case d: { e }
  default:
    f()
    // fall
  case (g): h; i
}
switch (a) {}
switch (a) { case 1: b }
try { a } catch (e) { b } finally { c }
try { a } catch { b }
try {} catch ({ message }) {}
try {} finally {}
with (a) b
label: { break label }
debugger
throw a
;;;
function f(a, b = 1, { c }, [d], ...e) {}
function* g() {} async function h() {}
async function* i(a,) {}
var x = { a, b, c() {}, get d() { return 1 }, set d(v) {}, async e() {}, *f() {}, async *g() {}, [h]: 1, 'i': 2, 3: 4, ...j, }
"x".y(), 'a' + b
