"""``codespec grammar check`` and ``codespec grammar accepts``: diagnoses grammars, and tells whether files match."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codespec.files import MAX_TEXT, StrPath, decode, read_bytes
from codespec.grammar.errors import Diagnostic, GrammarError
from codespec.grammar.gbnf.diagnose import diagnose
from codespec.grammar.grammar import Grammar, GrammarText
from codespec.grammar.tokenizer import byte_tokenizer
from codespec.protocols import CodespecError, GrammarState

_SLICE = 4096  # bytes given to the engine at once
_SHOWN = 8  # alternatives named in a message


@dataclass(frozen=True)
class FileMatch:
    """Whether a file matches a grammar.

    Attributes:
        file: as given.
        accepted: the whole file matches.
        line, column: of the first character that cannot stand there, or the end of the file where more is
            missing; from 1, the column in characters; None where accepted.
        expected: what could have stood there, in words; empty where accepted.
    """

    file: str
    accepted: bool
    line: int | None = None
    column: int | None = None
    expected: str = ""


def check(
    name_or_path: StrPath | GrammarText, lenient: bool = False, strict: bool = False, extensions: bool = False
) -> list[Diagnostic]:
    """Errors and warnings of a grammar; none means it can be used and nothing in it looks odd.

    Args:
        name_or_path, lenient, strict, extensions: as for ``Grammar.load``.

    Raises:
        CodespecError: there is no such grammar, or the file cannot be read.
    """
    source = GrammarText.find(name_or_path)
    found: list[Diagnostic] = []
    if source.notation == "gbnf":
        found = diagnose(source.text, source.name, strict, extensions or source.shipped, source.start)
        if any(each.severity == "error" for each in found):
            return found
    try:
        grammar = Grammar.load(source, lenient=lenient, strict=strict, extensions=extensions)
        if grammar.rules is not None and not grammar.needs_vocabulary:
            grammar.state(byte_tokenizer())
    except GrammarError as error:
        message = error.cause + (f"; {error.remedy}" if error.remedy else "")
        return [*found, Diagnostic(error.name, error.line, error.column, "error", message)]
    return found or [_placed(warning, grammar.name) for warning in grammar.warnings]


def _placed(warning: str, name: str) -> Diagnostic:
    """A warning that may begin with FILE:LINE:COLUMN."""
    match = re.match(r"(.*?):(\d+):(\d+): (.*)", warning)
    if match is None:
        return Diagnostic(name, 0, 0, "warning", warning.removeprefix(f"{name}: "))
    return Diagnostic(match[1], int(match[2]), int(match[3]), "warning", match[4])


def accepts(grammar: Grammar, path: StrPath) -> FileMatch:
    """Whether the whole of a UTF-8 file matches ``grammar``.

    Raises:
        CodespecError: the file is missing, unreadable, too large or not UTF-8; the grammar needs a model's
            vocabulary; or the engine gave up on so ambiguous a text.
    """
    file = Path(path)
    return accepts_text(grammar, decode(read_bytes(file, MAX_TEXT), file), str(file))


def accepts_text(grammar: Grammar, text: str, file: str = "text") -> FileMatch:
    """Whether the whole of ``text`` matches ``grammar``; ``file`` only names it in the result.

    Raises:
        CodespecError: as for ``accepts``.
    """
    state = grammar.state(byte_tokenizer())
    content = text.encode("utf-8", "surrogatepass")
    taken = 0
    while taken < len(content):
        count = state.accept(content[taken : taken + _SLICE])
        taken += count
        if count < min(_SLICE, len(content) - taken + count):
            break
    if taken == len(content) and state.can_end:
        return FileMatch(file, True)
    while taken and taken < len(content) and content[taken] & 0xC0 == 0x80:
        state.rollback(1)  # back to the first byte of the refused character
        taken -= 1
    before = content[:taken].decode("utf-8", "surrogatepass")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    try:
        wanted = expected(state)
    except CodespecError:  # the engine's limits: the verdict stands, the explanation is lost
        wanted = "something else"
    return FileMatch(file, False, line, column, wanted)


def expected(state: GrammarState) -> str:
    """The bytes that may come next in a state over ``byte_tokenizer``, in words."""
    bits = np.zeros((byte_tokenizer().size + 31) // 32, np.uint32)
    state.mask_into(bits)
    allowed = [byte for byte in range(256) if bits[byte >> 5] >> np.uint32(byte & 31) & 1]
    forced = state.forced().decode("utf-8", "ignore") if len(allowed) == 1 else ""
    if len(forced) > 1:
        return repr(forced[:40])
    visible = [byte for byte in allowed if 0x20 < byte < 0x7F]
    blank = [byte for byte in allowed if byte <= 0x20 or byte == 0x7F]
    names = [_name(low, high) for low, high in _runs(visible) + _runs(blank)]
    if len(visible) > 80:
        names = ["almost any character"]
    elif len(names) > _SHOWN:
        names = [*names[:_SHOWN], "…"]
    if len(visible) <= 80 and any(byte >= 0x80 for byte in allowed):
        names.append("a character beyond ASCII")
    if state.can_end:
        names.append("the end of the text")
    return " or ".join(names) if names else "nothing (a dead end)"


def _runs(values: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1 and (chr(value).isalnum() == chr(value - 1).isalnum()):
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs


def _name(low: int, high: int) -> str:
    if low == high:
        return repr(chr(low))
    joint = " or " if high == low + 1 else "…"
    return f"{chr(low)!r}{joint}{chr(high)!r}"
