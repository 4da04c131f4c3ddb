let a: string = 'b', c!: number, d: Array<Map<string, number[]>>= []
const e = (f: string, g?: number, ...h: any[]): h is string[] => true
function i<T extends object = {}, const U>(this: Window, j: T, k: U = l): asserts j is U { }
function m(n: string): void
function m(n: number): void
function m(n: any) { }
for (const o of p as Q[]) { }
try { } catch (r: unknown) { }
const s = <T,>(t: T) => t, u = async <V>(w: V): Promise<V> => w
const x = <any>y, z = a as unknown as B<C>, aa = { b: 1 } satisfies D
const ab = a! + b!.c![0]!(), ac = f<T>(x), ad = new Map<string, A<B>>()
a = b < c && d > e
a = b < c || d >> 2 >= 3
const ae = x ? (y) : (z) => w
const af = x as const
tag<T>`x`
a?.<T>(b)
let ag: (typeof ah)[number]
e(f<string>).g()
