type A = string | number & B
type C =
  | 'a'
  | "b"
  | -1
  | `x${string}y`
type D<T> = T extends (infer U)[] ? U : T extends string ? 1 : never
type E = { readonly [K in keyof T]?: T[K] }
type F = { -readonly [K in keyof T as `get${K}`]-?: T[K]; }
type G = (a: string, b?: number) => void
type H = new (...args: any[]) => I
type K = abstract new () => L
type M = [a: string, b?: number, ...c: boolean[]]
type N = [string, number?, ...O]
type P = typeof import('x')
type Q = import("y").Z<string>
type R = typeof a.b.c<d>
type S = readonly string[] | unique symbol
type T = A['b']['c'][]
type U = (() => void) | null | undefined | void | this
type V = { (a: string): b; new (c: d): e; f(): g; get h(): i; set h(v: i); [j: string]: k, l?: m }
type W = asserts
interface X<T> extends Y<T>, Z { a: string; b?(c: number): void
  readonly d: e
  [f: string]: any
  <T>(g: T): T
  new (h: i): j
}
let a: A
let b: B[] = [
  c,
]
