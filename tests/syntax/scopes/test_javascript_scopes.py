"""Which names of JavaScript and TypeScript stand for the same thing."""

import pytest

from tests.syntax.scopes.marked import check

# The name `new1` has come where it stands; every `old` in brackets is one that stands for the same thing.
CASES = [
    "function f(new1, b) { return <old> + b.old + {old: <old>} }\nfunction g(old) { return old }",
    "const f = (new1) => { const x = 1; return <old>(x) }",
    "const f = new1 => <old> + 1",
    "{ let new1 = 1; use(<old>) }\n{ let old = 2; use(old) }",
    "function f(new1) { return { <old>, other: <old> } }",
    "for (const new1 of list) { use(<old>); [].map(old => old) }",
    "class A { m(new1) { return this.old(<old>) } }",
    "try { a() } catch (new1) { log(<old>) }",
    "import { old } from 'x'; function f() { return new1 }",
    "function f({ a, b: new1 }, ...rest) { return <old> }",
    "function f() { if (x) { var new1 = 1; { let old = 2 } } return <old> }",
    # Hoisting.
    "function f() { use(<old>); if (a) { var new1 = 1 } for (var x in <old>) {} }\nuse(old)",
    "function f() { for (var new1 of xs) {} return <old> }",
    "function f() { for (let new1 of xs) { use(<old>) } return old }",
    "function f() { for (let new1 = 0; <old> < 1; <old>++) { { let old = 1; use(old) } } return old }",
    "function f(new1) { function old() {} }\nold()".replace("function old", "function <old>"),
    "<old>();\nfunction new1() { return <old>() }\nclass A { old() { this.old(<old>()) } }",
    "{ function new1() {} <old>() }\nold()",
    "const f = function new1() { return <old>() }; old()",
    "const C = class new1 { m() { return <old> } }; old",
    "class new1 { m() { return new <old>().old } }\nnew <old>()",
    "switch (a) { case 1: let new1; case <old>: use(<old>) }\nuse(old)",
    "try { old() } catch (new1) { let x = <old>; { let old } } finally { old() }",
    "class A { static { var new1 = 1; use(<old>) } static x = old }",
    # Patterns.
    "const { new1, b: { c: [d = <old>, ...e] }, [<old>]: f } = g",
    "const { a: new1 = <old>, ...old2 } = e; use(<old>, { <old>, old: <old>, [<old>]: 1, old() {} })",
    "let new1; ({ <old>, b: <old>, c: [<old>] } = e); [<old>] = e; <old> += 1",
    "function f({ a: [new1], ...b } = {}, c = <old>) { return <old> }",
    "let old = 1; function f({ new1 }) { return <old> }",
    "let new1 = 1; function f({ old }) { return old }\nlet { <old>: c } = d".replace("<old>: c", "old: c"),
    "const new1 = 1; label: for (;;) { break label }\nold: for (;;) { use(<old>); break old }",
    # Modules.
    "import new1 from 'x'; <old>(); function f(old) { return old }",
    "import * as new1 from 'x'; <old>.old()",
    "import { x as new1 } from 'x'; export { <old> as old }; export default <old>",
    "import { new1 } from 'x'; <old>(y => old2)",
    "export const new1 = 1; export { old } from 'x'; export { a as old }; var a; use(<old>)",
    "const new1 = 1; export { x, <old> }; var x",
    # Other names.
    "const new1 = 1; x.old = y?.old; z = { old: 1, get old() { return <old> } }; `old${<old>}`; /old/; 'old'",
    "with (x) { var new1; use(old) }",
    "function f(new1) { eval(x); return old }",
    "function f(new1) { return function (old) { return old } + (old => old) + <old> }",
    "function f() { arguments; let new1; use(<old>) }",
    "new1 = 1; use(old)",
]
TYPESCRIPT = [
    "{ type new1 = 1; let x: <old> = old; { const old = 2; let y: <old> = old } }",
    "const new1 = 2; { type old = 1; let x: old = <old> as typeof <old> }",
    "interface new1 {} namespace N { export interface Q extends <old> { old: <old>; m(old: <old>): old is <old> } }",
    "function f<new1>(a: <old>): Map<<old>, x.old> { let old: <old>; return old }\nlet y: old",
    "function f(new1: number): asserts <old> is string { type A = typeof <old>; return <old> }",
    "class A<new1> extends B<<old>> implements C<<old>> { x: <old>; static old: <old> }\nlet y: old",
    "enum new1 { old, b = old }\nlet x: <old> = <old>.old",
    "enum E { a = 1 }\nconst new1 = 1; enum F { b = a, c = old }",
    "type M = { [new1 in keyof T]: T[<old>] }; type O = { [old in K]: T[old] }",
    "type C<T> = T extends Array<infer new1> ? <old> : old",
    "type F = (new1: number) => typeof <old>; type G = (old: number) => typeof old; type H = [old: string]",
    "class A { constructor(private new1: number) { use(<old>, this.old) } }",
    "class A { constructor(new1: number) { use(<old>, this.old) } }",
    "interface I { [new1: string]: number; (old: 1): 2; new (old: 1): 2; old(old: 1): 2 }",
    "namespace new1 { export const a = 1 }\nnamespace <old> { export const b = <old>.a }\nlet x: <old>.T",
    "const new1 = 1; namespace N { export const old = 1 }\nnamespace N { use(old) }\nuse(<old>)",
    "function new1(a: 1): 1; function <old>(a: 2): 2; function <old>(a: any) { return <old>(a) }",
    "import type { T as new1 } from 'x'; let x: <old>; import q = require('q')",
    "import new1 = N.old; let x: <old>.T = <old>.a",
    "abstract class A { abstract old(old: 1): 2; m(new1: 1) { return <old>! + <old> } }",
    "const new1 = 1; declare global { var a: typeof <old> }\nlet x = { old: <old> } satisfies Old",
]
ELEMENTS = [
    "const New1 = () => 1; const x = <a Old={<Old>} b='Old'><<Old> c={1}></<Old>><<Old>.x/><b>Old</b></a>",
    "const a = (New1) => <a.Old Old={x.Old}>{<Old>}{(Old) => <Old />}</a.Old>",
]


@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize("marked", CASES)
def test_uses(language, marked):
    check(language, marked, "old", "new1")


@pytest.mark.parametrize("marked", TYPESCRIPT)
def test_types(marked):
    check("typescript", marked, "old", "new1")


@pytest.mark.parametrize("language", ["javascriptreact", "typescriptreact"])
@pytest.mark.parametrize("marked", ELEMENTS)
def test_elements(language, marked):
    check(language, marked, "Old", "New1")
