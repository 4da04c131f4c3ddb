class Expressions {
    Object[] values = {
        1, 0x1F_FFL, 0b1010, 017, 0L, 1_000, 1., .5, 1e10, 1.5e-3f, 0x1.8p3, 2d, 3F, 09.5, 'a', '\n', '\'', '\u0041', '\177', '\\',
        "", "a\"b\t\u00e9\s", """
            text "block" ""
            \""" end \
            """, null, true, false,
        a + b - c * d / e % f, a << 2 >> 3 >>> 4, a & b | c ^ ~d, !a && b || c != d, a <= b == c >= d, a<b, a>b, a>>b,
        - -a, -(-a), +a, a - -b, a-+b, a+-b, a++ + ++b, a-- - --b, a+ ++b, a++ + b--, a /b, a/b / c /* d */ / e // f
        / g,
        a ? b : c ? d : e, (a = b) + (c += d), a >>= 2, a >>>= 3, a <<= 1, a /= 2, a %= b, a ^= b, a |= b, a &= b, a -= b, a *= b,
        (int) -x, (Foo) x, (Foo<Bar>) (x), (int[]) y, (A & B<C>) z, (a) + b, (a.b) - c, (Foo) "s", (Foo) !x, (char) (x + 1), (@A String) x,
        () -> 1, x -> x, (x) -> x + 1, (x, y) -> { return x; }, (int x, String... y) -> {}, (final var x) -> y, (Runnable) () -> {}, _ -> 1,
        (Comparator<A> & Serializable) (a, b) -> 0, a ? x -> 1 : () -> 2, x -> y -> z = 1,
        String::new, int[]::new, a.b::c, List<String>::new, super::x, Outer.super::y, this::z, Map.Entry<A, B>::getKey, Foo[]::<T>new, f()::g,
        new int[3], new int[3][4][], new int[] {1, 2}, new String[][] {{"a"}, {}}, new Foo<>(), new Foo<A>(1) { int x; }, outer.new Inner(),
        new a.b.C(), new int[] {1}.length, new Foo().bar().baz[0].qux, new @A Foo(), new Foo<A>.Bar<B>(),
        int.class, int[].class, String[][].class, void.class, a.b.C.class, Outer.this, Foo.class.getName(),
        a.b.c(d, e).f[1].g(), Collections.<String>emptyList(), "a".length(), (a).b(), this.c, super.d(), a[b[c]][d],
        a < b && c > d, f(a < b, c > d), (a < b), i < MAX ? 1 : 2, x instanceof Foo ? 1 : 2, x instanceof Foo[] == y, größe + $x_1,
    };
}
