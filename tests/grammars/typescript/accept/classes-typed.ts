abstract class A<T> extends B<T> implements C, D<E> {
  private readonly a: string = 'b'
  public static b?: number
  protected c!: d
  declare e: f
  override g(): void { }
  abstract h(): i
  abstract j: k
  constructor(private readonly l: m, public n = 1, @dec() o?: p) { super() }
  get q(): r { return 1 }
  set q(v: r) { }
  s(): void
  s(t?: u): void { }
  async v?<T>(w: T): Promise<x> { return y }
  [z: string]: any
  static readonly [aa] = 1
  readonly
  declare
  private b() { }
  static #c?: d
  @dec() private e: f
  @dec({ a: 1 })
  g = <T>(h: T): void => { }
  abstract get i(): j
  static async *k<T>(): AsyncGenerator<T> { }
}
