"""Changes that belong together: once the first is made, the others follow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.training.edits.source import EDITED, KEYWORDS, Names, Replacement, Source
from codespec.syntax.occurrences import Call, Occurrence

MOST = 40
"""Replacements of one change."""

UNTOUCHED = KEYWORDS | frozenset(
    {"_", "__init__", "self", "cls", "this", "main", "module", "exports", "require", "err"}
)


@dataclass(frozen=True)
class Change:
    """Replacements in the order of the text; ``first`` of them is made first, a definition where there is one."""

    kind: str
    replacements: tuple[Replacement, ...]
    first: int = 0


Maker = Callable[[Source, random.Random, Names], "Change | None"]


def rename_local(source: Source, rnd: random.Random, names: Names) -> Change | None:
    """A parameter or variable of a function, and all its uses there."""
    found = source.found
    if not found.functions:
        return None
    function = rnd.randrange(len(found.functions))
    inside = [
        each for each in found.names if each.kind in ("name", "shorthand") and found.within(each.function, function)
    ]
    first: dict[str, Occurrence] = {}
    for each in inside:
        first.setdefault(each.text, each)
    counts = Counter(each.text for each in inside)
    own = found.functions[function].name
    wanted = [name for name, each in first.items() if each.bound and counts[name] > 1 and name != own]
    return _rename("rename", _choice(wanted, rnd), inside, rnd, names)


def rename_global(source: Source, rnd: random.Random, names: Names) -> Change | None:
    """A function, class or variable of the file, or a type, and all its uses in the file."""
    found = source.found
    local = {each.text for each in found.names if each.bound and each.function >= 0 and each.kind == "name"}
    own = {each.name for each in found.functions if each.parent < 0}
    inside = [each for each in found.names if each.kind in ("name", "type", "shorthand")]
    counts = Counter(each.text for each in inside)
    known = {each.text: each.kind for each in inside if each.bound or each.kind == "type" or each.text in own}
    wanted = [name for name, kind in known.items() if counts[name] > 1 and (name not in local or kind == "type")]
    return _rename("rename", _choice(wanted, rnd), inside, rnd, names)


def rename_attribute(source: Source, rnd: random.Random, names: Names) -> Change | None:
    """An attribute or method by its name, wherever it stands in the file."""
    inside = [each for each in source.found.names if each.kind == "attribute"]
    methods = {each.name for each in source.found.functions}
    counts = Counter(each.text for each in inside)
    name = _choice([name for name, count in counts.items() if count > 1], rnd)
    if name in methods:
        inside = [each for each in source.found.names if each.kind in ("attribute", "name")]
    return _rename("rename", name, inside, rnd, names)


def _rename(
    kind: str, name: str | None, places: Sequence[Occurrence], rnd: random.Random, names: Names
) -> Change | None:
    if name is None or name in UNTOUCHED or (len(name) == 1 and rnd.random() < 0.5):
        return None
    new = names.new(name, rnd, frozenset(each.text for each in places))
    return _change(kind, [
        Replacement(each.start, each.end, f"{name}: {new}" if each.kind == "shorthand" else new)
        for each in places if each.text == name
    ])  # fmt: skip


def change_literal(source: Source, rnd: random.Random, names: Names) -> Change | None:
    """A string or number that stands several times."""
    literals = [each for each in source.found.names if each.kind in ("string", "number") and 2 < len(each.text) < 40]
    literals = [each for each in literals if "\n" not in each.text]
    counts = Counter(each.text for each in literals)
    old = _choice([text for text, count in counts.items() if 1 < count < 12], rnd)
    if old is None:
        return None
    if old[0].isdigit():
        new = str(rnd.choice([2, 3, 5, 8, 10, 16, 20, 50, 100, 128, 255, 256, 500, 512, 1000, 1024, 2048, 4096, 8080]))
    else:
        body = old[1:-1]
        cut = rnd.randrange(len(body) + 1)
        way = rnd.randrange(4)
        word = names.word(rnd)
        new = old[0] + (
            f"{body}_{word}", f"{word}-{body}", word, f"{body[:cut]}{word}"
        )[way].replace("\\", "") + old[-1]  # fmt: skip
        if not old.startswith(("'", '"', "`")) or old.startswith(('"""', "'''")):
            return None
    return _change("literal", [Replacement(each.start, each.end, new) for each in literals if each.text == old])


def add_parameter(source: Source, rnd: random.Random, names: Names) -> Change | None:
    """A parameter more of a function of the file, and of its calls, with any value."""
    return _parameter(source, rnd, names, passed=False)


def pass_parameter(source: Source, rnd: random.Random, names: Names) -> Change | None:
    """A parameter more of a function of the file, and of its calls, as can be told from the first: a name is passed as
    it is called."""
    return _parameter(source, rnd, names, passed=True)


def _parameter(source: Source, rnd: random.Random, names: Names, passed: bool) -> Change | None:
    functions = {each.name: each for each in source.found.functions if each.name and each.closing > 0}
    calls = [
        each for each in source.found.calls if each.callee.rpartition(".")[2] in functions and _simple(source, each)
    ]
    name = _choice(sorted({each.callee.rpartition(".")[2] for each in calls}), rnd)
    if name is None:
        return None
    function = functions[name]
    new = names.any(rnd.choice(["word", "snake", "word"]), rnd)
    if new in KEYWORDS:
        return None
    declared, given = new, new
    edits = EDITED[source.document.language]
    if edits.keywords and rnd.random() < 0.5:
        declared = f"{new}={rnd.choice(['None', 'False', 'True', '0', '1'])}"
        given = f"{new}={rnd.choice([new, new, 'True', 'None', '1'])}"
        if passed:
            declared, given = f"{new}=None" if rnd.random() < 0.4 else declared, f"{new}={new}"
    elif edits.types and (edits.typed == 1 or rnd.random() < edits.typed):
        declared = edits.parameter.format(name=new, type=rnd.choice(edits.types))
    places = [_inserted(source.text, function.closing, bool(function.parameters), declared)]
    places += [_inserted(source.text, each.closing, bool(each.arguments), given)
               for each in calls if each.callee.rpartition(".")[2] == name]  # fmt: skip
    return _change("parameter", places, places[0] if rnd.random() < (0.9 if passed else 0.75) else None)


def change_calls(source: Source, rnd: random.Random, names: Names) -> Change | None:
    """All calls of one thing: an argument more or less, another callee, or something around them."""
    calls = [each for each in source.found.calls if _simple(source, each) and len(each.callee) < 40]
    counts = Counter(each.callee for each in calls)
    callee = _choice([name for name, count in counts.items() if 1 < count < 16 and "\n" not in name], rnd)
    if callee is None:
        return None
    chosen = [each for each in calls if each.callee == callee]
    way = rnd.randrange(5)
    text, edits = source.text, EDITED[source.document.language]
    word = names.any(rnd.choice(["word", "snake", "camel"]), rnd)
    if way == 0:
        new = rnd.choice([word, f'"{word}"', str(rnd.randrange(9)), edits.nothing or word])
        if edits.keywords and rnd.random() < 0.6:
            new = f"{word}={rnd.choice(['True', 'None', 'False', '1', word])}"
        return _change("call", [_inserted(text, each.closing, bool(each.arguments), new) for each in chosen])
    if way == 1:
        return _change("call", [_removed(each) for each in chosen if each.arguments])
    if way == 2:
        head, dot, tail = callee.rpartition(".")
        own = rnd.random() < 0.6 or not head
        new = f"{head}{dot}{names.new(tail, rnd, frozenset())}" if own else f"{word}.{tail}"
        return _change("call", [Replacement(each.start, each.start + len(callee), new) for each in chosen])
    if way == 3:
        outer = rnd.choice(["int", "str", "list", "len", word, word]) + "("
        if edits.awaits and rnd.random() < 0.4:
            return _change("call", [Replacement(each.start, each.start, "await ") for each in chosen])
        pairs = [Replacement(each.start, each.end, f"{outer}{text[each.start : each.end]})") for each in chosen]
        return _change("call", pairs)
    suffix = rnd.choice([f".{word}()", f".{word}", "[0]", f".{names.word(rnd)}()"])
    return _change("call", [Replacement(each.end, each.end, suffix) for each in chosen])


def _simple(source: Source, call: Call) -> bool:
    return "\n" not in source.text[call.start : call.end] and call.end - call.start < 120


def _inserted(text: str, closing: int, more: bool, new: str) -> Replacement:
    at = closing
    while at and text[at - 1] in " \n\t,":
        at -= 1
    return Replacement(at, at, f", {new}" if more else new)


def _removed(call: Call) -> Replacement:
    (start, end) = call.arguments[-1]
    return Replacement(call.arguments[-2][1] if len(call.arguments) > 1 else start, end, "")


def _change(kind: str, places: Iterable[Replacement], first: Replacement | None = None) -> Change | None:
    ordered = sorted(set(places))
    if not 1 < len(ordered) <= MOST or any(a.end > b.start for a, b in pairwise(ordered)):
        return None
    return Change(kind, tuple(ordered), ordered.index(first) if first is not None else 0)


def _choice(names: Sequence[str], rnd: random.Random) -> str | None:
    return rnd.choice(names) if names else None


def single(source: Source, rnd: random.Random, names: Names) -> Replacement | None:
    """A change that nothing follows from: of a name or literal that stands once in the file."""
    counts = Counter(each.text for each in source.found.names)
    once = [
        each for each in source.found.names if counts[each.text] == 1 and len(each.text) > 2 and "\n" not in each.text
    ]
    if not once:
        return None
    place = rnd.choice(once)
    if place.kind == "string" and (place.text[0].isalpha() or place.text.startswith(('"""', "'''"))):
        return None  # what is in it may be code
    if place.kind == "string":
        return Replacement(place.start, place.end, place.text[0] + names.word(rnd) + place.text[-1])
    if place.kind == "number":
        return Replacement(place.start, place.end, str(rnd.randrange(2, 500)))
    return Replacement(place.start, place.end, names.new(place.text, rnd, frozenset(counts)))


MAKERS: tuple[tuple[float, Maker], ...] = (
    (0.29, rename_local),
    (0.06, rename_global),
    (0.11, rename_attribute),
    (0.05, change_literal),
    (0.27, pass_parameter),
    (0.22, change_calls),
)
"""With their shares; the rest of the examples are other things."""
