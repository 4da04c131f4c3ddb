"""Which names of Go stand for the same thing."""

import pytest

from tests.syntax.scopes.marked import check

# The name `new1` has come where it stands; every `old` in brackets is one that stands for the same thing.
CASES = [
    "func f(new1 int) int { return <old> + x.old }",
    "func f() { new1, err := g(); use(<old>, err) }",
    "func f() { if new1 := g(); <old> != nil { use(<old>) }; old := 1; use(old) }",
    "func f() { for i, new1 := range xs { use(<old>, i) } }",
    "func f(new1 int) T { return T{old: <old>} }",
    "func (t *T) m(a, new1 string) { func() { <old>() }(); func(old int) { old() }(1) }",
    "func f() { var new1 = 1; <old>++ }\nfunc g() { var old = 1; old++ }",
    "func f() { for _, new1 := range xs { old := <old>; use(old) } }",
    "func f() { for _, old := range xs { new1 := old; use(<old>) } }",
    "func f() { new1, a := g(); <old>, b := h(<old>, a); use(<old>, b) }",
    # Types are names, too.
    "type new1 int\nfunc f(old int) { old++ }\nfunc g(x <old>) <old> { return <old>(x) }",
    "func f(new1 int) { g(<old>) }\ntype old int",
    "type old int\nfunc f(new1 old) old { return old(<old>) }".replace("return old(<old>)", "return <old>(<old>)"),
    "func f(a []new1) { type x struct { old new1 } }\ntype <old> struct { old int; b *<old> }",
    "type T struct { new1 }\ntype <old> int",
    "type new1 int\ntype T struct { a old }".replace("a old", "a <old>"),
    "type new1 int\ntype T struct { old }",
    # Where a name begins.
    "func f() { new1 := 1; { old := <old>; use(old) }; use(<old>) }",
    "func f(new1 int) { <old>, x := 1, 2; use(<old>, x) }",
    "func f() (new1 int, err error) { <old>, err = 1, nil; return <old>, err }",
    "func f() { var new1 int = old; use(<old>) }",
    "func f() { const new1 = old; use(<old>) }",
    "func f() { use(old); new1 := 1; use(<old>) }\nvar old = 2",
    "var a = <old>\nvar new1 = 1\nfunc f() { <old>++; var old = <old>; old++ }",
    "func f() { type new1 struct { next *<old> }; var x <old> }\nvar y old",
    (
        "func f() { if new1, err := g(); err != nil { use(<old>) } else if x := <old>; x { old := 1; "
        "use(old) } else { use(<old>) }; use(old) }"
    ),
    "func f() { for i, new1 := range old { use(<old>) } }",
    "func f() { for new1 = range xs { use(<old>) }; use(<old>) }\nvar <old> int",
    "func f(x any) { switch new1 := old.(type) { case int: use(<old>); case T: old := <old>; use(old) }; use(old) }",
    "func f(new1 any) { switch old := <old>.(type) { case int: use(old); default: use(old) }; use(<old>) }",
    "func f() { select { case new1, ok := <-c: use(<old>, ok); case old := <-d: use(old); case c <- old: } }",
    "func f() { switch new1 := g(); { case <old> > 1: old := 2; use(old); default: use(<old>) } }",
    "func f(new1 int) { go func(old int) { use(old) }(<old>); defer func() { use(<old>) }() }",
    # Keys of literals.
    (
        "func f(new1 int) { use(T{old: <old>}, map[string]int{<old>: <old>}, []int{<old>: 1}) }\n"
        "func g(old int) { use([]T{{old: old}}, p.T{old: 1}) }"
    ),
    "func f(new1 int) { use([]T{{old: <old>}}, p.T{old: 1}) }",
    "func f(new1 int) { use(struct{ old int }{old: <old>}, map[string]T{<old>: {old: <old>}}, T{<old>, x.old}) }",
    # Other names.
    "func f(new1 int) { old: for { break old }; x.old = <old>; goto old }\nfunc (t T) old() {}",
    "func f(new1 int, g func(old int) old) interface{ old(old int) } { return <old> }",
    "func f[new1 any](a <old>, b []<old>) (c map[string]<old>) { var x <old>; return x }\nvar y old",
    "type G[new1 any] struct { a <old>; old int }\nvar y old",
    "func (t *G[new1]) m(a <old>) <old> { return a }\nvar y old",
    "func main() { init() }\nfunc new1() { <old>() }",
]


@pytest.mark.parametrize("marked", CASES)
def test_uses(marked):
    check("go", "package p\n" + marked, "old", "new1")
