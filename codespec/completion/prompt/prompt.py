"""A prompt from a document and a position, within a budget of tokens.

While one types, a prompt should change at its end only: the tokens before that are in the target's KV cache already.
So the length of the typed text matters in coarse steps only: the window before the cursor begins at a line with a
round number and jumps on when it is full; the window after the cursor depends on the text there alone, except near the
beginning of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote

from codespec.engine.engine import TextVocabulary
from codespec.models.fim import FimFormat, Snippets
from codespec.protocols import CodespecError, Snippet, Vocabulary
from codespec.recent import Recent

SUFFIX_SHARE = 0.3
"""The part of a prompt's room that the text after the cursor gets at most, unless little stands before the cursor."""
MOST_SUFFIX_PSM = 256
"""Tokens of the text after the cursor in layouts where it comes after the typed text: every key decodes it again."""
CONTEXT_SHARE = 0.25
"""The part of a prompt's room that snippets of other files get at most."""
LEAST_CONTEXT = 2048
"""Context length from which on there is room for snippets of other files."""
KEPT = 0.6
"""The part of a full window before the cursor that stays when it jumps: the higher, the more often it jumps."""
CHUNK_LINES = 32
"""Lines that are tokenized together, between line numbers divisible by it; a chunk that is whole is tokenized once."""
LEAST_ROOM = 16
MARKERS = 4
"""Tokens of a layout besides the header, at most."""
# A token is seldom longer; text beyond budget * this many characters cannot fit and is not tokenized at all.
CHARACTERS_PER_TOKEN = 12
_USUAL_CHARACTERS = 4
_LONGEST_PATH = 80
_MOST_KEPT, _LONGEST_KEPT = 1 << 20, 1 << 14
"""Characters whose tokens are remembered, in all and of one text."""


class Prompts:
    """Builds prompts for one model. Remembers the tokens of recent texts.

    Args:
        layout: the model's fill-in-the-middle layout; None: the prompt is the text before the cursor alone.
    """

    def __init__(self, vocabulary: Vocabulary, layout: FimFormat | None) -> None:
        self._vocabulary, self._layout = vocabulary, layout
        self._markers = layout.markers if layout is not None else frozenset()
        names = layout.names if layout is not None else ()
        self._names = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True)))) if names else None
        self._known: Recent[str, list[int]] = Recent(_MOST_KEPT, size=lambda text, _: len(text))

    def prompt(
        self,
        prefix: str,
        suffix: str,
        path: str,
        budget: int,
        *,
        context: Sequence[Snippet] = (),
        repository: str = "",
        comment: str = "",
    ) -> list[int]:
        """The token ids of a prompt for the text between ``prefix`` and ``suffix``; at most ``budget`` of them.

        Whole lines are left out, those farthest from the cursor first.

        Args:
            path: of the file; shown as it is. May be empty.
            context: snippets of other files, as many as fit into their share, the first ones first.
            repository: its name, for models that were trained with one.
            comment: what starts a comment in the file's language; empty: there are none.

        Raises:
            CodespecError: the budget is too small for any prompt.
        """
        layout, room = self._layout, budget - MARKERS
        for shown, name in ((context, path), ((), path), ((), "")):
            header, inside = self._header(name, shown, repository, comment, int(room * CONTEXT_SHARE))
            left = room - len(header) - len(inside)
            if left >= LEAST_ROOM:
                break
        if left < LEAST_ROOM:
            raise CodespecError(f"a budget of {budget} tokens is too small for a prompt; raise `context`")
        if layout is None:
            return [*header, *inside, *self.tail(prefix, left)]
        after = self.head(suffix, self._suffix_budget(len(prefix), left))
        before = self.tail(prefix, left - len(after))
        return layout.arrange(header, [*inside, *before], after)

    def _suffix_budget(self, before: int, room: int) -> int:
        """The suffix's part of the ``room`` for both, where ``before`` characters stand before the cursor."""
        assert self._layout is not None
        if self._layout.order == "psm":
            return min(int(room * SUFFIX_SHARE), MOST_SUFFIX_PSM)
        # Whole quarters, two characters to a token: it must not change with every key.
        quarters = -(-2 * before // room)
        return int(room * max(SUFFIX_SHARE, min(1 - quarters / 4, 0.75)))

    def _header(
        self, path: str, context: Sequence[Snippet], repository: str, comment: str, budget: int
    ) -> tuple[list[int], list[int]]:
        """The tokens before the prefix's marker, and those after it."""
        layout = self._layout
        if layout is None or layout.family.snippets != "files" or layout.file_separator is None:
            style = layout.family.snippets if layout is not None else "comments"
            return [], self._as_text(path, context, style, comment, budget)
        family, separator = layout.family, layout.file_separator
        found: list[int] = []
        if context and repository and layout.repository is not None:
            found += [layout.repository, *self.tokens(_shown(repository) + family.repository_end)]
        start = len(found)
        for snippet in context:
            text = _shown(snippet.path) + "\n" + _ended(snippet.text)
            if self._size(text, budget - len(found) - 1) < budget - len(found):
                found += [separator, *self.tokens(text)]
        if len(found) == start:
            found = []
            if not family.path_alone:
                return [], []
        own = self.tokens(_shown(path) + "\n") if path else []
        return ([*found, separator], own) if family.path_inside else ([*found, separator, *own], [])

    def _as_text(self, path: str, context: Sequence[Snippet], style: Snippets, comment: str, budget: int) -> list[int]:
        """Snippets of other files as text before the prefix, each under its path; as comments where ``style`` says."""
        if style == "comments" and not comment:
            return []
        heads = {"pluses": "+++++ ", "paths": comment or "#", "comments": comment + " ", "files": ""}
        head = heads[style]
        found: list[int] = []
        for snippet in context:
            text = f"{head}{_shown(snippet.path)}\n"
            if style == "comments":
                text += "".join(head + line for line in lines_of(_ended(snippet.text)))
            else:
                text += _ended(snippet.text) + "\n"
            if self._size(text, budget - len(found)) <= budget - len(found):
                found += self.tokens(text)
        if found and path and style != "comments":
            found += self.tokens(f"{head}{_shown(path)}\n")
        return found

    def tail(self, text: str, budget: int) -> list[int]:
        """Tokens of the last lines of ``text``, at most ``budget``: of all if they fit, otherwise of as many as make up
        ``KEPT`` of the budget or more, from a line with a round number on; of a line that alone is longer its end."""
        if budget <= 0:
            return []
        start, number = self._start(text, budget)
        tokens: list[int] = []
        for chunk in _chunks(text[start:], number):
            tokens += self.tokens(chunk)
        return tokens[-budget:]

    def _start(self, text: str, budget: int) -> tuple[int, int]:
        """Where the window before the cursor starts, in characters, and the number of that line."""
        limit = max(0, len(text) - budget * CHARACTERS_PER_TOKEN)
        position, used = len(text), 0
        positions: list[int] = []  # of the lines that may be the first, from the cursor backwards
        while position > 0:
            start = max(limit, text.rfind("\n", limit, position - 1) + 1)
            size = self._size(text[start:position], budget - used)
            if used + size > budget or start == limit > 0:
                break
            position, used = start, used + size
            if used >= budget * KEPT:
                positions.append(position)
        else:
            return 0, 0
        number = text.count("\n", 0, position)  # of the line at `position`
        if not positions:  # one line takes up most of the room
            return self._inside(text, start, position, budget - used), number - 1
        last = number + len(positions) - 1
        round_one = roundest(number, last)
        return positions[last - round_one], round_one

    def _inside(self, text: str, start: int, end: int, room: int) -> int:
        """Where in the line from ``start`` to ``end`` a window begins that has ``room`` for some of its tokens."""
        for characters in (_USUAL_CHARACTERS, CHARACTERS_PER_TOKEN):
            part = text[max(start, end - room * characters) : end]
            tokens = self.tokens(part)
            if len(tokens) >= room:
                break
        kept = b"".join(map(self._vocabulary.token_bytes, tokens[-room:] if room > 0 else ()))
        length = min(len(part), len(kept.decode("utf-8", "ignore")))
        return roundest(end - length, end - int(length * KEPT))

    def _size(self, line: str, most: int) -> int:
        """How many tokens a line has; more than ``most`` where that is plain from its length."""
        return most + 1 if len(line) > most * CHARACTERS_PER_TOKEN else len(self.tokens(line))

    def head(self, text: str, budget: int) -> list[int]:
        """Tokens of the first lines of ``text`` that fit; of the first part of a line that alone does not."""
        if budget <= 0:
            return []
        kept = used = 0
        limit = min(len(text), budget * CHARACTERS_PER_TOKEN)
        while kept < limit:
            end = text.find("\n", kept, limit) + 1 or limit
            used += self._size(text[kept:end], budget - used)
            if used > budget:
                break
            kept = end
        tokens: list[int] = []
        for chunk in _chunks(text[:kept] or text[: budget * _USUAL_CHARACTERS], 0):
            tokens += self.tokens(chunk)
        return tokens[:budget]

    def tokens(self, text: str) -> list[int]:
        """Tokens of ``text``, none of them a marker, whatever stands in it."""
        found = self._known.use(text)
        if found is None:
            found = self._as_plain(text)
            if len(text) <= _LONGEST_KEPT:
                self._known[text] = found
        return found

    def _as_plain(self, text: str) -> list[int]:
        tokens = self._vocabulary.tokenize(text)
        if self._names is None or self._markers.isdisjoint(tokens):
            return tokens
        # llama.cpp takes the names of "user-defined" tokens for those tokens in any text: cut them in two.
        tokens, start = [], 0
        for match in self._names.finditer(text):
            tokens += self._vocabulary.tokenize(text[start : match.start() + 1])
            start = match.start() + 1
        return tokens + self._vocabulary.tokenize(text[start:])


def fim_prompt(
    vocabulary: Vocabulary, layout: FimFormat, prefix: str, suffix: str, path: str, budget: int
) -> list[int]:
    """One prompt of ``Prompts``, with the file's name and no snippets."""
    return Prompts(vocabulary, layout).prompt(prefix, suffix, file_name(path), budget)


def file_header(vocabulary: Vocabulary, layout: FimFormat, path: str) -> list[int]:
    """The separator and the file's name, for models that were trained with them."""
    if layout.file_separator is None:
        return []
    name = file_name(path)
    return [layout.file_separator, *(vocabulary.tokenize(name + "\n") if name else [])]


def text_prompt(vocabulary: TextVocabulary, layout: FimFormat | None, text: str, path: str) -> list[int]:
    """The token ids of a text to go on from, that of a whole file of this name; at least one."""
    tokens = [*text_header(vocabulary, layout, path), *vocabulary.tokenize(text)]
    return tokens or sorted(vocabulary.end_tokens)[:1]


def text_header(vocabulary: TextVocabulary, layout: FimFormat | None, path: str) -> list[int]:
    """The token ids before such a text."""
    header = file_header(vocabulary, layout, path) if layout is not None else []
    return [vocabulary.beginning, *header] if vocabulary.beginning is not None else header


def tail(vocabulary: Vocabulary, text: str, budget: int) -> list[int]:
    """As ``Prompts.tail``."""
    return Prompts(vocabulary, None).tail(text, budget)


def file_name(path: str) -> str:
    """The last part of a path or URI."""
    return PurePosixPath(_plain(path)).name


def relative_path(path: str, workspace: str) -> str:
    """A path or URI as seen from a workspace's folder or URI; the file's name where it lies elsewhere."""
    inner, outer = _plain(path), _plain(workspace).rstrip("/")
    return inner[len(outer) + 1 :] if outer and inner.startswith(outer + "/") else file_name(path)


def _plain(path: str) -> str:
    if "://" in path:
        path = unquote(path.partition("://")[2]).partition("#")[0]
    return path.replace("\\", "/")


def _shown(path: str) -> str:
    """A path on one line, its end if it is long."""
    path = " ".join(path.split("\n"))
    return path if len(path) <= _LONGEST_PATH else path[-_LONGEST_PATH:].partition("/")[2] or path[-_LONGEST_PATH:]


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def lines_of(text: str) -> list[str]:
    """The lines of ``text`` with their ends; only ``\\n`` is one."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def roundest(low: int, high: int) -> int:
    """Of the numbers from ``low`` to ``high`` the one that the highest power of two divides."""
    while high & (high - 1) >= low and high:
        high &= high - 1
    return high


def _chunks(text: str, number: int) -> Iterator[str]:
    """``text``, whose first line has this number, cut before every line with a number divisible by ``CHUNK_LINES``."""
    lines = lines_of(text)
    start, end = 0, CHUNK_LINES - number % CHUNK_LINES
    while start < len(lines):
        yield "".join(lines[start:end])
        start, end = end, end + CHUNK_LINES
