class A {}
class B extends (a, C) {
  a
  b = 1
  c = () => {
    x
  }
  static d
  static = 1
  get;
  set;
  #e = 2; 'f' = 3; 4 = 5;
  [g] = 6
  static { this.h = 7 }
  constructor() { super(); this.#e }
  get i() { return super.i } set i(v) {}
  static async *j() {}
  async k() {} * l() {} async [m]() {}
  #n() { return #e in this }
  get() {} set() {} static() {} async() {}
  static get o() {}
  accessor p = 1
  'use'() {}
  if() {}
  ;
}
@dec @dec.b(1) class D extends mixin(E) { @(x) y; @z w() {} }
x = class extends F {}
x = class G {}
