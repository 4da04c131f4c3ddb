x = a ? b : c ? d : e
x = y = z += 1, w ||= 2, v &&= 3, u ??= 4, t **= 2, s >>>= 1
a + +b - -c + ++d - --e
- - a
typeof a === 'b' && void 0, delete a.b, !a, ~b, !!c
a?.b?.[c]?.(d)?.e.f
a ?.5:1
x = a?.5:1
new A, new A(), new A.B.C(d).e(), new (f())(), new new X()(), function () { new.target }
a ** b ** c
"b" in c, d instanceof E
(a, b)
f(...a, b, ...c,);
[a, , b] = [...c];
({ a, b: { c = 1 }, ...d } = e);
[a.b, c[0]] = d
x = async () => await y
x = async function* () { yield; yield a; yield* b; const c = yield }
import('x').then(m => m)
import.meta.url
x = y || (() => {})
x = (function () {})()
!function () {}()
a = b ? (c, d) : e => f
a = b ? c => d : e
