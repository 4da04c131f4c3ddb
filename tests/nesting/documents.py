"""Documents that nest as deeply as one likes: one for each way in which a language nests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

MOST_BYTES = 400_000


class Nest(NamedTuple):
    """A way of nesting: ``before``, ``opening`` × n, ``middle``, ``closing`` × n, ``after``.

    Attributes:
        name: is the name ``n`` that stands in the middle of some, for renames.
    """

    language: str
    kind: str
    opening: str
    middle: str = "1"
    closing: str = ""
    before: str = ""
    after: str = "\n"

    def __str__(self) -> str:
        return f"{self.language}-{self.kind}"

    def text(self, depth: int, whole: bool = True) -> tuple[str, int]:
        """A document of so many levels, or as many as ``MOST_BYTES`` hold, and the offset of its middle.

        Args:
            whole: False leaves out all that closes.
        """
        size = len((self.opening + self.closing).encode())
        depth = min(depth, (MOST_BYTES - len((self.before + self.middle + self.after).encode())) // size)
        head = self.before + self.opening * depth
        return head + self.middle + (self.closing * depth + self.after if whole else ""), len(head)


def _nests(language: str, before: str, after: str, kinds: Mapping[str, tuple[str, ...]]) -> list[Nest]:
    """Kinds by what opens, stands in the middle and closes, which stand between ``before`` and ``after``; a fourth and
    fifth text take the place of these."""
    found = []
    for kind, (opening, middle, closing, *around) in kinds.items():
        first, last = around or (before, after)
        found.append(Nest(language, kind, opening, middle, closing, first, last))
    return found


_PLAIN = {
    "summands": ("a + ", "1", ""),
    "products": ("(a * ", "1", ")"),
    "comparisons": ("a == ", "1", ""),
    "brackets": ("(", "1", ")"),
    "unary": ("!", "a", ""),
    "minus": ("- ", "a", ""),
    "ternaries": ("a ? b : ", "c", ""),
    "ternaries-before": ("(a ? ", "c", " : b)"),
    "calls": ("f(", "1", ")"),
    "calls-called": ("f", "()", "()", "x = ", ";\n"),
    "chain": ("a", ".b", ".b", "x = ", ";\n"),
    "methods": ("a", ".b()", ".b()", "x = ", ";\n"),
    "index": ("a[", "1", "]"),
    "indexed": ("", "a", "[0]", "x = ", ";\n"),
    "assignments": ("a = ", "1", ""),
    "unclosed": ("(", "1", "", "x = ", ""),
    "closers": ("", "1", ")", "x = ", ";\n"),
    "mixed-brackets": ("([", "1", "])"),
}
_C_STATEMENTS = {
    "blocks": ("{", " a = 1; ", "}", "", ""),
    "ifs": ("if (a) ", "b();", "", "", ""),
    "if-blocks": ("if (a) { ", "b();", " }", "", ""),
    "else-ifs": ("if (a) b(); else ", "c();", "", "", ""),
    "else-if-blocks": ("if (a) { b(); } else ", "{ c(); }", "", "", ""),
    "fors": ("for (;;) ", "b();", "", "", ""),
    "whiles": ("while (a) { ", "b();", " }", "", ""),
    "switches": ("switch (a) { case 1: ", "b();", " }", "", ""),
}


def _within(kinds: Mapping[str, tuple[str, ...]], before: str, after: str) -> dict[str, tuple[str, ...]]:
    return {name: (*kind[:3], before, after) for name, kind in kinds.items()}


_JS = {
    **_PLAIN,
    **_C_STATEMENTS,
    "labels": ("a: ", "b();", "", "", ""),
    "arrays": ("[", "1", "]"),
    "objects": ("{a: ", "1", "}"),
    "objects-in-arrays": ("[{a:", "1", "}]"),
    "unclosed-objects": ("[{a:", "1", "", "", ""),
    "braces": ("{", "1", "}"),
    "arrows": ("a => ", "1", ""),
    "arrow-blocks": ("() => { return ", "1", " }"),
    "functions": ("function f() { ", "var n = 1;", " }", "", ""),
    "iife": ("(function () { ", "n = 1;", " })()", "", ";\n"),
    "classes": ("class A { m() { ", "return 1;", " } }", "", ""),
    "templates": ("`${", "1", "}`"),
    "typeof": ("typeof ", "a", ""),
    "awaits": ("await ", "a", "", "async function f() { x = ", "; }\n"),
    "news": ("new ", "A", ""),
    "spread": ("[...", "a", "]"),
    "patterns": ("[", "a", "]", "let ", " = x;\n"),
    "object-patterns": ("{a: ", "b", "}", "function f(", ") {}\n"),
    "exponents": ("a ** ", "1", ""),
    "nullish": ("a ?? ", "1", ""),
    "optional": ("", "a", "?.b", "x = ", ";\n"),
    "commas": ("a, ", "1", ""),
    "tries": ("try { ", "a();", " } finally {}", "", ""),
    "regex-groups": ("(", "a", ")", "x = /", "/;\n"),
    "vars-in-blocks": ("{ let a = 1; ", "var b = 2;", " }", "", ""),
    "catches": ("try {} catch (e) { ", "var e = 1;", " }", "", ""),
}
_JSX = {
    "elements": ("<a>", "b", "</a>", "x = ", ";\n"),
    "expressions": ("<a>{", "b", "}</a>", "x = ", ";\n"),
    "attributes": ("<a b={", "c", "} />", "x = ", ";\n"),
    "fragments": ("<>", "b", "</>", "x = ", ";\n"),
}
_TS = {
    "unions": ("A | ", "B", "", "type X = ", ";\n"),
    "leading-unions": ("\n  | A", "", "", "type X =", ";\n"),
    "intersections": ("A & ", "B", "", "type X = ", ";\n"),
    "generics": ("A<", "B", ">", "type X = ", ";\n"),
    "array-types": ("", "A", "[]", "type X = ", ";\n"),
    "object-types": ("{a: ", "B", "}", "type X = ", ";\n"),
    "tuple-types": ("[", "B", "]", "type X = ", ";\n"),
    "conditional-types": ("A extends B ? C : ", "D", "", "type X = ", ";\n"),
    "function-types": ("(a: ", "B", ") => C", "type X = ", ";\n"),
    "bracket-types": ("(", "B", ")", "type X = ", ";\n"),
    "casts": ("", "a", " as B", "x = ", ";\n"),
    "non-null": ("", "a", "!", "x = ", ";\n"),
    "namespaces": ("namespace A { ", "let a = 1;", " }", "", ""),
    "declared": ("declare namespace A { ", "let a: B;", " }", "", ""),
    "keyof": ("keyof ", "A", "", "type X = ", ";\n"),
    "readonly": ("readonly ", "A[]", "", "type X = ", ";\n"),
}
_PYTHON = {
    **{name: _PLAIN[name] for name in ("summands", "products", "brackets", "calls", "index")},
    "comparisons": ("a == ", "1", ""),
    "not": ("not ", "a", ""),
    "minus": ("-", "a", ""),
    "ternaries": ("a if b else ", "c", ""),
    "ands": ("a and ", "b", ""),
    "lambdas": ("lambda: ", "1", ""),
    "lambdas-default": ("lambda a=(", "1", "): a"),
    "awaits": ("await ", "a", "", "async def f():\n    x = ", "\n"),
    "calls-called": ("f", "()", "()", "x = ", "\n"),
    "chain": ("", "a", ".b", "x = ", "\n"),
    "methods": ("", "a", ".b()", "x = ", "\n"),
    "indexed": ("", "a", "[0]", "x = ", "\n"),
    "assignments": ("a = ", "1", "", "", "\n"),
    "lists": ("[", "1", "]"),
    "dicts": ("{a: ", "1", "}"),
    "sets": ("{", "1", "}"),
    "tuples": ("(", "1", ",)"),
    "mixed-brackets": ("([", "1", "])"),
    "unclosed": ("[", "1", "", "x = ", ""),
    "closers": ("", "1", "]", "x = ", "\n"),
    "comprehensions": ("[a for a in ", "b", "]"),
    "f-strings": ("f'{", "1", "}'"),
    "walrus": ("(a := ", "1", ")"),
    "elifs": ("elif a:\n    b\n", "else:\n    c\n", "", "if a:\n    b\n", ""),
    "decorators": ("@a\n", "def f(): pass", "", "", "\n"),
    "targets": ("(", "a", ",)", "", " = 1\n"),
    "deleted": ("(", "a", ",)", "del ", "\n"),
    "for-targets": ("[", "a", "]", "for ", " in b: pass\n"),
    "strings": ("'a' ", "'b'", ""),
    "stars": ("*", "a", "", "f(", ")\n"),
    "types": ("A[", "B", "]", "x: ", " = 1\n"),
    "patterns": ("[", "a", "]", "match x:\n    case ", ":\n        pass\n"),
    "same-line": ("if a: ", "b", "", "", "\n"),
    "globals": ("(", "global n", ")", "def f():\n    ", "\n"),
    "print-chevron": ("a >> ", "b", "", "print ", "\n"),
}
_C_KINDS = {
    **_PLAIN,
    "dereferences": ("*", "p", ""),
    "addresses": ("& ", "p", ""),
    "casts": ("(int) ", "1", ""),
    "type-casts": ("(T) ", "p", ""),
    "sizeofs": ("sizeof ", "a", ""),
    "compound-literals": ("(T){", "1", "}"),
    "arrows": ("", "a", "->b", "x = ", ";\n"),
    "macro-calls": ("F(", "a", ")"),
    "commas": ("a, ", "1", ""),
}
_C = {
    **_within(_C_KINDS, "int f(void) { x = ", "; }\n"),
    **_within(_C_STATEMENTS, "int f(void) { ", " }\n"),
    "unclosed": ("(", "1", "", "int f(void) { x = ", ""),
    "gotos": ("{ ", "goto a; a: ;", " }", "int f(void) { ", " }\n"),
    "labels": ("a: ", "b();", "", "int f(void) { ", " }\n"),
    "pointers": ("*", "p", "", "int ", ";\n"),
    "declarators": ("(*", "p", ")", "int ", ";\n"),
    "function-pointers": ("void (*g)(", "int a", ")", "void f(", ");\n"),
    "arrays": ("", "a", "[1]", "int ", ";\n"),
    "initialisers": ("{", "1", "}", "int a[] = ", ";\n"),
    "structs": ("struct { ", "int a;", " } b;", "struct s { ", " };\n"),
    "conditionals": ("#if A\n", "int a;\n", "#endif\n", "", ""),
    "ifdefs": ("#ifdef A\n", "int a; }\n", "#endif\n", "", ""),
    "elifs": ("#elif A\nint a;\n", "", "", "#if A\nint b;\n", "#endif\n"),
    "linkage": ('extern "C" { ', "int a;", " }", "", "\n"),
    "strings": ('"a" ', '"b"', "", "char *x = ", ";\n"),
    "directives": ("", "#define A ", "(", "", "\n"),
}
_CPP = {
    **_C,
    "generics": ("A<", "B", ">", "", " x;\n"),
    "namespaces": ("namespace a { ", "int b;", " }", "", "\n"),
    "scopes": ("a::", "b", "", "int x = ", ";\n"),
    "lambdas": ("[]() { ", "1;", " }();", "int f() { ", " }\n"),
    "inserts": ("a << ", "b", "", "int f() { x << ", "; }\n"),
}
_GO_KINDS = {
    **{k: v for k, v in _PLAIN.items() if not k.startswith("ternaries")},
    "arrows": ("<-", "a", ""),
    "dereferences": ("*", "p", ""),
    "addresses": ("&", "p", ""),
    "literals": ("T{", "1", "}"),
    "maps": ("map[a]b{1: ", "c", "}"),
    "assertions": ("", "a", ".(T)"),
    "functions": ("func() T { return ", "1", " }"),
    "conversions": ("[]byte(", "a", ")"),
}
_GO = {
    **_within(_GO_KINDS, "package p\n\nfunc f() { x = ", " }\n"),
    "blocks": ("{ ", "a = 1", " }", "package p\n\nfunc f() { ", " }\n"),
    "ifs": ("if a { ", "b()", " }", "package p\n\nfunc f() { ", " }\n"),
    "else-ifs": ("if a { b() } else ", "{ c() }", "", "package p\n\nfunc f() { ", " }\n"),
    "fors": ("for { ", "b()", " }", "package p\n\nfunc f() { ", " }\n"),
    "switches": ("switch { case a: ", "b()", " }", "package p\n\nfunc f() { ", " }\n"),
    "closures": ("func() { ", "n := 1; _ = n", " }()", "package p\n\nfunc f() { ", " }\n"),
    "labels": ("a: ", "b()", "", "package p\n\nfunc f() { ", " }\n"),
    "unclosed": ("(", "1", "", "package p\n\nvar x = ", ""),
    "pointer-types": ("*", "T", "", "package p\n\nvar x ", "\n"),
    "array-types": ("[]", "T", "", "package p\n\nvar x ", "\n"),
    "map-types": ("map[a]", "T", "", "package p\n\nvar x ", "\n"),
    "func-types": ("func(", "T", ")", "package p\n\nvar x ", "\n"),
    "structs": ("struct { a ", "T", " }", "package p\n\ntype x ", "\n"),
    "generics": ("A[", "T", "]", "package p\n\nvar x ", "\n"),
    "selects": ("select { default: ", "b()", " }", "package p\n\nfunc f() { ", " }\n"),
}
_RUST_KINDS = {
    **{k: v for k, v in _PLAIN.items() if not k.startswith("ternaries")},
    "dereferences": ("*", "p", ""),
    "borrows": ("&", "p", ""),
    "casts": ("", "a", " as T"),
    "questions": ("", "a", "?"),
    "awaits": ("", "a", ".await"),
    "closures": ("|a| ", "1", ""),
    "block-values": ("{ ", "1", " }"),
    "if-values": ("if a { 1 } else ", "{ 2 }", ""),
    "matches": ("match a { b => ", "1", " }"),
    "struct-values": ("T { a: ", "1", " }"),
    "arrays": ("[", "1", "]"),
    "macros": ("f!(", "1", ")"),
    "ranges": ("..", "a", ""),
    "returns": ("return ", "a", ""),
    "paths": ("a::", "b", ""),
}
_RUST = {
    **_within(_RUST_KINDS, "fn f() { let x = ", "; }\n"),
    "blocks": ("{ ", "a();", " }", "fn f() { ", " }\n"),
    "ifs": ("if a { ", "b();", " }", "fn f() { ", " }\n"),
    "loops": ("'a: loop { ", "break 'a;", " }", "fn f() { ", " }\n"),
    "functions": ("fn f() { ", "a();", " }", "", "\n"),
    "modules": ("mod a { ", "fn f() {}", " }", "", "\n"),
    "generics": ("A<", "B", ">", "type X = ", ";\n"),
    "references": ("&", "B", "", "type X = ", ";\n"),
    "tuple-types": ("(", "B", ",)", "type X = ", ";\n"),
    "patterns": ("(", "a", ",)", "fn f() { let ", " = x; }\n"),
    "or-patterns": ("(a | ", "b", ")", "fn f() { let ", " = x; }\n"),
    "struct-patterns": ("T { a: ", "b", " }", "fn f(", ": T) {}\n"),
    "uses": ("a::{", "b", "}", "use ", ";\n"),
    "comments": ("/* ", "a", " */", "", "\n"),
    "unclosed": ("(", "1", "", "fn f() { let x = ", ""),
    "raw-strings": ("#", '"a"', "#", "const A: &str = r", ";\n"),
    "where-else": ("let a = b else { ", "return;", " };", "fn f() { ", " }\n"),
}
_JAVA_CLASS = ("class A { void f() { x = ", "; } }\n")
_JAVA = {
    **_within({**_PLAIN, "casts": ("(int) ", "1", ""), "lambdas": ("a -> ", "1", "")}, *_JAVA_CLASS),
    **_within(_C_STATEMENTS, "class A { void f() { ", " } }\n"),
    "generics": ("A<", "B", ">", "class A { ", " x; }\n"),
    "arrays": ("", "int", "[]", "class A { ", " x; }\n"),
    "initialisers": ("{", "1", "}", "class A { int[] x = ", "; }\n"),
    "classes": ("class A { ", "int a;", " }", "", "\n"),
    "annotations": ("@A(", "1", ")", "", " class B {}\n"),
    "concatenation": ('"a" + ', "b", "", *_JAVA_CLASS),
}
_JSON = {
    "arrays": ("[", "1", "]", "", "\n"),
    "objects": ('{"a": ', "1", "}", "", "\n"),
    "mixed": ('[{"a":', "1", "}]", "", "\n"),
    "unclosed": ('[{"a":', "1", "", "", ""),
    "closers": ("", "1", "]", "", "\n"),
    "indented": ("[\n ", "1", "\n]", "", "\n"),
}
_SHELL = {
    "substitutions": ("$(", "a", ")", "x=", "\n"),
    "backquotes": ("`", "a", "`", "x=", "\n"),
    "subshells": ("( ", "a", " )", "", "\n"),
    "groups": ("{ ", "a", "; }", "", "\n"),
    "ifs": ("if a; then ", "b", "; fi", "", "\n"),
    "elifs": ("elif a; then b; ", "else c; fi", "", "if a; then b; ", "\n"),
    "pipes": ("a | ", "b", "", "", "\n"),
    "ands": ("a && ", "b", "", "", "\n"),
    "arithmetic": ("(", "1", ")", "x=$((", "))\n"),
    "summands": ("a + ", "1", "", "x=$((", "))\n"),
    "defaults": ("${a:-", "b", "}", "x=", "\n"),
    "strings": ('"$(', "a", ')"', "x=", "\n"),
    "functions": ("f() { ", "a", "; }", "", "\n"),
    "cases": ("case a in b) ", "c", " ;; esac", "", "\n"),
    "tests": ("! ", "a", "", "[[ ", " ]]\n"),
}
_SQL = {
    "brackets": ("(", "1", ")", "SELECT ", ";\n"),
    "summands": ("a + ", "1", "", "SELECT ", ";\n"),
    "ands": ("a = 1 AND ", "b = 2", "", "SELECT 1 WHERE ", ";\n"),
    "queries": ("(SELECT * FROM ", "a", ")", "SELECT * FROM ", ";\n"),
    "cases": ("CASE WHEN a THEN b ELSE ", "c", " END", "SELECT ", ";\n"),
    "calls": ("f(", "1", ")", "SELECT ", ";\n"),
    "unions": ("SELECT 1 UNION ", "SELECT 2", "", "", ";\n"),
    "not": ("NOT ", "a", "", "SELECT ", ";\n"),
    "comments": ("/* ", "a", " */", "", "\n"),
}
_YAML = {
    "flow-lists": ("[", "1", "]", "a: ", "\n"),
    "flow-maps": ("{a: ", "1", "}", "a: ", "\n"),
    "dashes": ("- ", "1", "", "", "\n"),
    "keys": ("? ", "a", "", "", "\n"),
    "unclosed": ("[", "1", "", "a: ", ""),
}
_TOML = {
    "arrays": ("[", "1", "]", "a = ", "\n"),
    "tables": ("{a = ", "1", "}", "a = ", "\n"),
    "keys": ("a.", "b", "", "", " = 1\n"),
    "headers": ("a.", "b", "", "[", "]\n"),
    "unclosed": ("[", "1", "", "a = ", ""),
}
_HTML = {
    "elements": ("<a>", "b", "</a>", "", "\n"),
    "lists": ("<ul><li>", "b", "</li></ul>", "", "\n"),
    "unclosed": ("<div>", "b", "", "", ""),
    "closers": ("", "b", "</div>", "", "\n"),
    "comments": ("<!-- ", "a", " -->", "", "\n"),
}
_STYLE = {
    "rules": ("a { ", "b: c;", " }", "", "\n"),
    "media": ("@media a { ", "b { c: d; }", " }", "", "\n"),
    "calls": ("calc(", "1", ")", "a { b: ", "; }\n"),
    "selectors": ("a > ", "b", "", "", " { c: d; }\n"),
    "nots": (":not(", "b", ")", "a", " { c: d; }\n"),
}
_MARKDOWN = {
    "quotes": ("> ", "a", "", "", "\n"),
    "lists": ("- ", "a", "", "", "\n"),
    "emphasis": ("*", "a", "*", "", "\n"),
    "links": ("[", "a", "](b)", "", "\n"),
}
_COMMENTS = {
    "open-comments": ("/* ", "a", "", "", "\n"),
    "line-comments": ("// ", "a", "", "", "\n"),
}


class Indented(NamedTuple):
    """Blocks by indentation: each level is one column deeper, so that n levels take n² / 2 bytes."""

    language: str
    kind: str
    head: str
    last: str

    def __str__(self) -> str:
        return f"{self.language}-{self.kind}"

    def text(self, depth: int, whole: bool = True) -> tuple[str, int]:
        depth = min(depth, int((2 * MOST_BYTES) ** 0.5) - len(self.head))
        lines = [" " * level + self.head for level in range(depth)]
        head = "\n".join(lines) + "\n" + " " * depth
        return head + self.last + ("\n" if whole else ""), len(head)


NESTS: list[Nest | Indented] = [
    *_nests("python", "x = ", "\n", _PYTHON),
    *_nests("javascript", "x = ", ";\n", {**_JS, **_COMMENTS}),
    *_nests("javascriptreact", "x = ", ";\n", {**_JS, **_JSX}),
    *_nests("typescript", "x = ", ";\n", {**_JS, **_TS}),
    *_nests("typescriptreact", "x = ", ";\n", {**_JS, **_JSX, **_TS}),
    *_nests("c", "", "", {**_C, **_COMMENTS}),
    *_nests("cpp", "", "", _CPP),
    *_nests("go", "", "", {**_GO, **_COMMENTS}),
    *_nests("rust", "", "", _RUST),
    *_nests("java", "", "", _JAVA),
    *_nests("json", "", "", _JSON),
    *_nests("jsonc", "", "", _JSON),
    *_nests("shellscript", "", "", _SHELL),
    *_nests("sql", "", "", _SQL),
    *_nests("yaml", "", "", _YAML),
    *_nests("toml", "", "", _TOML),
    *_nests("html", "", "", _HTML),
    *_nests("css", "", "", {**_STYLE, **_COMMENTS}),
    *_nests("scss", "", "", {**_STYLE, **_COMMENTS}),
    *_nests("markdown", "", "", _MARKDOWN),
    Indented("python", "indented-ifs", "if a:", "b"),
    Indented("python", "indented-functions", "def f():", "nonlocal n"),
    Indented("python", "indented-classes", "class A:", "b = 1"),
    Indented("python", "indented-loops", "for a in b:", "break"),
    Indented("yaml", "indented-keys", "a:", "b"),
    Indented("yaml", "indented-dashes", "-", "b"),
    Indented("markdown", "indented-lists", "- a", "b"),
]
