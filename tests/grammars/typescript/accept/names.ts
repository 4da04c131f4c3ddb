var of = get + set + async + static_, as = from, iff, inn, newer, type, target
of = a.if.class.new.default + a?.in
var o = { if: 1, class: 2, get: 3, set, async, of, get get() { return 1 }, set set(v) {}, get, static: 4, await: 5 }
async(1)
get: for (;;) break get
