"""Statements to put into real files, and where there are some."""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

FOLDERS = {
    "python": (sysconfig.get_path("stdlib"),),
    "javascript": ("/usr/lib/node_modules", "/usr/share/nodejs"),
}
SUFFIXES = {"python": (".py",), "javascript": (".js", ".mjs", ".cjs")}
LARGEST = 60_000

STATEMENTS = {
    "javascript": (
        "return", "return x", "break", "continue", "await foo()", "const a = await foo()", "const q", "let NAME",
        "let NAME = 1", "const NAME = 2", "var NAME = 3", "function NAME() {}", "class NAME {}", "yield x",
        "async function NAME() { await x }", "super.foo()", "super()", "const {a, b} = NAME", "const {NAME} = x",
        "new.target", "foo bar", "foo() {}", "get foo() {}", "constructor() {}", "static x = 1", "#p = 1", "this.#p",
        "for (const NAME of x) {}", "while (1) break", "a: for (;;) continue a", "continue a", "NAME => { let NAME }",
        "try { x() } catch (NAME) { var NAME }", "items.map((x) => { await x })", "x?.y = 1", "case 1:", "default:",
        "export const NAME = 1", "export default 1", 'import NAME from "x"', "let NAME, other", "1++", "/(a/.test(x)",
        "}", "} else {", "if (x) {", "function foo() {", "NAME.foo()", "label: NAME()", "let {NAME: z} = q",
    ),
    "python": (
        "return", "return x", "yield x", "break", "continue", "await foo()", "x = await foo()", "nonlocal NAME",
        "global NAME", "NAME = 1", "def NAME(a, a): pass", "def foo(a=1, b): pass", "def foo():", "if x:", "else:",
        "except:", "except A:", "try:", "print x", 'exec "x"', "f(a=1, 2)", "f(a=1, a=2)", "*a, *b = c", "*a = b",
        "x = *a", "from __future__ import annotations", "from x import *", "del f()", "class A: return",
        "async def foo(): await x", "async with a: pass", 'raise E, "x"', "lambda: (yield)", "[x async for x in y]",
        "[(yield x) for x in y]", "a, b: int", "(a, b) += 1", "0777", "while x: break", "    indented", "  odd",
        "x := 1", "(x := 1)", "import NAME", "for NAME in x: pass", "pass", "x =", "NAME.x = 1", "finally:", "@NAME",
    ),
}  # fmt: skip


def files(language: str, count: int, chooser: random.Random) -> list[tuple[Path, str]]:
    """Some files of a language with their texts, those of which are installed here."""
    found = [
        path
        for folder in FOLDERS[language]
        for path in sorted(Path(folder).rglob("*"))
        if path.suffix in SUFFIXES[language] and "testdata" not in path.parts and path.is_file()
    ]
    chooser.shuffle(found)
    texts = []
    for path in found:
        data = path.read_bytes()
        if 200 < len(data) < LARGEST and b"\r" not in data and len(texts) < count:
            try:
                texts.append((path, data.decode()))
            except UnicodeDecodeError:
                continue
    return texts


def insertions(language: str, text: str, count: int, chooser: random.Random) -> Iterator[tuple[int, str]]:
    """Offsets at the ends of lines and statements to put in there, some of them cut off, about names that are near."""
    lines = text.split("\n")
    for _ in range(count):
        row = chooser.randrange(len(lines))
        following = next((line for line in lines[row + 1 :] if line.strip()), "")
        like = chooser.choice((lines[row], following))
        indentation = like[: len(like) - len(like.lstrip())]
        near = re.findall(r"\b[A-Za-z_]\w*\b", "\n".join(lines[max(0, row - 15) : row + 15])) or ["x"]
        statement = chooser.choice(STATEMENTS[language]).replace("NAME", chooser.choice(near))
        added = "\n" + indentation + statement
        if chooser.random() < 0.3:
            added = added[: chooser.randrange(2, len(added) + 1)]
        yield sum(len(line) + 1 for line in lines[:row]) + len(lines[row]), added
