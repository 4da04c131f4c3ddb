"""The tree of a document: its syntax errors, and the syntax around a position."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple

from codespec.languages import Language, load
from codespec.syntax.brackets import brackets_in
from codespec.syntax.descent import LineStarts, is_deeper, path_to
from codespec.syntax.kinds import DEFINITIONS, IN_STRINGS, LISTS, STRING
from codespec.syntax.leaves import Role, leaves_in
from codespec.syntax.parsing import Parser, TooMuchToParse, new_parser

if TYPE_CHECKING:
    import tree_sitter

    from codespec.early_errors import EarlyError, EarlyErrors

LARGEST = 2_000_000
"""Characters of a document that is parsed at all: a first parse takes about 120 ms per megabyte."""

# The first line of something at the top level: not indented, not what opens or closes a block, no label of C, and no
# directive of its preprocessor, which may stand anywhere.
_TOP_LEVEL = re.compile(rb"^(?:[A-Za-z_\x80-\xff](?!\w*:[ \t]*$)|[@<$])", re.MULTILINE)


@dataclass(frozen=True)
class Problems:
    """What tree-sitter could not make sense of.

    Attributes:
        count: ERROR and MISSING nodes.
        extent: bytes that the ERROR nodes cover.
    """

    count: int = 0
    extent: int = 0

    def __add__(self, other: Problems) -> Problems:
        return Problems(self.count + other.count, self.extent + other.extent)

    def no_worse_than(self, other: Problems, added: int = 0, strict: bool = True) -> bool:
        """Whether there are no more of them, and over no more text, ``added`` bytes of new text aside; where not
        ``strict``, fewer may be longer: the parser often trades several errors for one that covers them."""
        shorter = self.extent <= other.extent + added
        return self.count <= other.count and (shorter or (not strict and self.count < other.count))


NO_PROBLEMS = Problems()

Blank = Callable[[bytes], bytes]
"""Makes of a document what is parsed, with as many bytes and the same lines."""


@dataclass(frozen=True)
class Start:
    """A position from which the text may be parsed on its own.

    Attributes:
        offset: in characters.
        top_level: whether the statement there is a part of the file itself, not of a block in it.
    """

    offset: int
    top_level: bool


@dataclass(frozen=True)
class SyntaxContext:
    """The syntax around a position in a document.

    Attributes:
        kind: ``unknown`` where an error is in the way.
        before: of a comment or string, the text from its start to the position.
        after: of a comment or string, the text from the position to its end.
        definitions: whether definitions stand side by side there: in the file itself, or in a class.
    """

    kind: Literal["code", "comment", "string", "unknown"] = "unknown"
    before: str = ""
    after: str = ""
    definitions: bool = False


class SyntaxToken(NamedTuple):
    """A token behind a position.

    Attributes:
        start, end: in bytes behind the position; a token that the position is inside of starts at -1.
        role: what it is part of.
    """

    start: int
    end: int
    role: Role


def well_formed(language: Language, text: str) -> bool:
    """Whether the parser of the language's own makers, or of Python's, takes ``text`` whole, which is stricter than
    tree-sitter's. True where none is at hand."""
    if not language.own_parser:
        return True
    parse: Callable[[str], object] = load(language.own_parser)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def syntax_tree(language: Language, text: str, blank: Blank | None = None) -> SyntaxTree | None:
    """The tree of a document; None without a parser for its language, or where it is too large or takes too long."""
    found = _parser(language.parser) if language.parser else None
    if found is None or len(text) > LARGEST:
        return None
    try:
        return SyntaxTree(found, text, blank=blank)
    except TooMuchToParse:
        return None


def syntax_parser(language: Language) -> Parser | None:
    """The parser of a language, None where none is installed. One thread at a time."""
    return _parser(language.parser) if language.parser else None


@functools.cache
def _parser(name: str) -> Parser | None:
    return new_parser(name)


class SyntaxTree:
    """The tree of one version of a document. One thread at a time.

    Attributes:
        text: of the document; what is parsed may be blanked.
    """

    def __init__(
        self,
        parser: Parser,
        text: str,
        old: tree_sitter.Tree | None = None,
        blank: Blank | None = None,
        data: bytes | None = None,
    ) -> None:
        """
        Args:
            old: a tree of which the parser takes over what has not changed.
            data: what is parsed, where that is known already.

        Raises:
            TooMuchToParse: it takes too long.
        """
        self._parser, self.text, self._blank = parser, text, blank
        self._source = _encode(text)
        self._data = data if data is not None else self._source if blank is None else blank(self._source)
        self._tree = parser.parse(self._data, old)
        self._root = self._tree.root_node

    def with_text(self, offset: int, text: str) -> SyntaxTree:
        """The tree of the document with ``text`` put in at ``offset``, in characters.

        It says what a parse from the beginning would say (``tests/syntax/test_syntax.py``): the lines around the
        position are read anew, too, and where errors meet, which the parser reckons with one another, everything is.

        Raises:
            TooMuchToParse: that takes too long.
        """
        new = self.text[:offset] + text + self.text[offset:]
        data = _encode(new) if self._blank is None else self._blank(_encode(new))
        added, place = len(_encode(text)), self._byte(offset)
        start = self._data.rfind(b"\n", 0, max(0, self._data.rfind(b"\n", 0, place))) + 1
        end = _line_end(self._data, _line_end(self._data, place))
        if self._blank is not None and (data[:start] != self._data[:start] or data[end + added :] != self._data[end:]):
            return SyntaxTree(self._parser, new, blank=self._blank, data=data)
        old = self._tree.copy()
        points = (_point(self._data, start), _point(self._data, end), _point(data, end + added))
        old.edit(start, end, end + added, *points)
        found = SyntaxTree(self._parser, new, old, self._blank, data)
        if found._root.has_error and self._root.has_error:
            return SyntaxTree(self._parser, new, blank=self._blank, data=data)
        return found

    def errors_in(self, data: bytes) -> list[tuple[int, int, bool]]:
        """Of another text: start and end of each error, and whether something is missing there.

        Raises:
            TooMuchToParse: it takes too long.
        """
        root = self._parser.parse(data).root_node
        nodes = _problem_nodes(root) if root.has_error else ()
        return sorted((node.start_byte, node.end_byte, node.is_missing) for node in nodes)

    @cached_property
    def problems(self) -> Problems:
        """The errors of the document."""
        return _sum(_problem_nodes(self._root))

    def early_errors(self, language: Language, offset: int, path: str) -> EarlyErrors:
        """What judges the texts put in at ``offset`` (in characters) as the compiler of the language does.

        Args:
            path: of the file, which may tell more of the language.
        """
        from codespec.early_errors import EarlyErrors  # a language server never judges

        return EarlyErrors(language, self._root, self._data, self._byte(offset), path)

    def all_early_errors(self, language: Language, path: str) -> set[EarlyError]:
        """What the compiler of the language refuses early anywhere in the document; nothing where it does not parse.

        Raises:
            TooMuchToJudge: it would take too long.
        """
        from codespec.early_errors import early_errors

        return early_errors(language, self._root, self._data, path)

    def early_errors_added(self, before: EarlyErrors, strict: bool = True) -> list[EarlyError]:
        """The errors that came with the text of ``with_text``.

        Args:
            before: what judges texts at that position.
            strict: whether those count, too, that were there before, if the text touches them.
        """
        return before.added(self._root, self._data, strict)

    def problems_elsewhere(self, offset: int, window: int) -> Problems:
        """The errors that what is missing at ``offset`` (in characters) did not cause.

        These are:
        - errors before the part of the file that ``offset`` is in;
        - errors that show when what follows that part is parsed on its own. The part after it counts as the same one
          if it begins right behind ``offset``;
        - errors of the part itself, more than ``window`` characters on. What an open bracket leaves is none of them:
          something missing, a closing bracket too many, and whatever comes after one.
        """
        root = self._root
        if not root.has_error:
            return NO_PROBLEMS
        place = self._byte(offset)
        starts = [match.start() for match in _TOP_LEVEL.finditer(self._source)]
        own = max((start for start in starts if start <= place), default=0)
        following = [start for start in starts if start > place]
        # What begins right behind the place may lack its own beginning: its errors say nothing.
        behind = bool(following) and not self._data[place : following[0]].strip()
        next_own = [*following, len(self._data), len(self._data)][1 if behind else 0]
        far = self._byte(offset + window)
        alone = self._problems_from(next_own)

        nodes = sorted(_problem_nodes(root), key=lambda node: node.start_byte)
        others = [node for node in nodes if node.end_byte <= own or (node.start_byte, node.end_byte) in alone]
        in_part = (node for node in nodes if far <= node.start_byte and node.end_byte <= next_own)
        return _sum([*others, *takewhile(lambda node: not self._is_of_a_bracket(node), in_part)])

    def _is_of_a_bracket(self, node: tree_sitter.Node) -> bool:
        """Whether an open bracket further up may be the cause of an error."""
        start = node.start_byte
        text = self._data[start : node.end_byte].strip(b")]} \t\r\n;,")
        before = self._data[max(0, start - 200) : start].rstrip()[-1:]
        return node.is_missing or not text or before in (b")", b"]", b"}")

    def _problems_from(self, start: int) -> set[tuple[int, int]]:
        """Where the errors are in what follows ``start``, read on its own; nowhere, if that takes too long."""
        try:
            root = self._parser.parse(self._data[start:]).root_node
        except TooMuchToParse:
            return set()
        return {(start + node.start_byte, start + node.end_byte) for node in _problem_nodes(root)}

    def tokens(self, offset: int, length: int) -> list[SyntaxToken]:
        """The tokens in ``length`` characters behind ``offset``, also in part."""
        start, end = self._byte(offset), self._byte(offset + length)
        return [
            SyntaxToken(max(leaf.start_byte - start, -1), leaf.end_byte - start, role)
            for leaf, role in leaves_in(self._root, start, end)
        ]

    @cached_property
    def brackets(self) -> list[tuple[int, str]]:
        """Position, in characters, and sign of each bracket in the code of the document, in order."""
        return list(brackets_in(self._tree, self._source))

    def part_at(self, offset: int) -> tuple[str, str]:
        """What begins with the first sign behind ``offset``: the type of the largest node that does, lists of
        statements aside, and of the one around it; empty where nothing follows."""
        place = self._byte(offset)
        start = place + len(self._data[place:]) - len(self._data[place:].lstrip())
        path = path_to(self._root, start, start + 1)
        if start == len(self._data) or path[-1].start_byte < start:
            return "", ""
        at = len(path) - 1
        while at and path[at - 1].start_byte == start and path[at - 1].type not in LISTS:
            at -= 1
        return path[at].type, path[at - 1].type if at else ""

    def starts(self, offset: int) -> Iterator[Start]:
        """Where text that leads up to ``offset`` (in characters) may be read on its own, outermost first.

        For each list of statements around it: its first statement (not of the file, where that is the whole text),
        then the statement that ``offset`` is in.
        """
        place = self._byte(offset)
        node: tree_sitter.Node | None = self._root
        lines, seen, characters, done = LineStarts(self._data), {0}, 0, 0
        while node is not None:
            inner = [child for child in node.children if child.start_byte < place and not child.is_missing]
            if node.type in LISTS or node is self._root:
                named = [child for child in inner if child.is_named]
                for child in named[:1] + named[-1:]:
                    at = lines.of(child.start_byte)
                    if at not in seen:
                        seen.add(at)
                        characters, done = characters + len(self._source[done:at].decode()), at
                        yield Start(characters, node is self._root)
            node = inner[-1] if inner else None

    def context_at(self, offset: int) -> SyntaxContext:
        """The syntax around ``offset``, in characters."""
        place = self._byte(offset)
        path = self._path_to(place)
        # Beside an open quote the parser goes on as if it were not there, so errors anywhere make code doubtful.
        kind: Literal["code", "unknown"] = "unknown" if self._root.has_error else "code"
        while len(path) > 1:
            node = path[-1]
            if node.type in IN_STRINGS:
                break
            if "comment" in node.type or (STRING.search(node.type) and node.start_byte < place):
                found: Literal["comment", "string"] = "comment" if "comment" in node.type else "string"
                text = self._source[node.start_byte : node.end_byte]
                inside = place < node.end_byte or (found == "comment" and not text.endswith((b"*/", b"\n", b"-->")))
                if inside and node.start_byte < place:
                    before, after = self._source[node.start_byte : place], self._source[place : node.end_byte]
                    return SyntaxContext(found, before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
            if node.type in LISTS:
                break
            path.pop()
        return SyntaxContext(kind, definitions=_hold_definitions(path))

    def depth_at(self, offset: int) -> int:
        """How many nodes ``offset`` is in, one in the other."""
        return len(self._path_to(self._byte(offset)))

    def nests_deeper(self, end: int, most: int) -> bool:
        """Whether more than about ``most`` nodes are in each other before ``end``, or may be once what the parser could
        not read is complete."""
        return is_deeper(self._root, self._byte(end), most)

    def _path_to(self, place: int) -> list[tree_sitter.Node]:
        # A comment of one line holds the place behind its last character, too.
        return path_to(self._root, max(0, place - 1), place)

    def _byte(self, offset: int) -> int:
        return len(_encode(self.text[:offset]))


def _hold_definitions(path: Sequence[tree_sitter.Node]) -> bool:
    """Whether the last of some nodes within each other holds definitions."""
    if path[-1].type == "block":  # Python's
        return len(path) > 1 and path[-2].type == "class_definition"
    return path[-1].type in DEFINITIONS


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _point(data: bytes, byte: int) -> tuple[int, int]:
    return data.count(b"\n", 0, byte), byte - data.rfind(b"\n", 0, byte) - 1


def _line_end(data: bytes, byte: int) -> int:
    """Behind the line break that follows."""
    return data.find(b"\n", byte) + 1 or len(data)


def _sum(nodes: Iterable[tree_sitter.Node]) -> Problems:
    count = extent = 0
    for node in nodes:
        count += 1
        extent += node.end_byte - node.start_byte if node.is_error else 0
    return Problems(count, extent)


def _problem_nodes(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_missing or node.is_error:
            yield node
        elif node.has_error:
            inner = [child for child in node.children if child.has_error or child.is_missing or child.is_error]
            waiting += inner
            if not inner:  # something is missing that has no node, such as the line end of a statement
                yield node
