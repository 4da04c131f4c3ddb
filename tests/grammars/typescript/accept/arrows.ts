a => a;
() => {};
(a) => ({ b: 1 });
(a, b = 2, ...c) => a + b;
({ a, b: [c, { d = 1 } = {}] }, [e, , f] = []) => { return a };
async x => x;
async (x, y) => { await x };
async () => {};
const f = (a) => (b) => (c) => a;
x = a => b => { c };
foo((a) => a, async (b) => { }, () => []);
x = () => {};
y = a => {} // done
z = () => a ? b : c
