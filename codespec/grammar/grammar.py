"""``Grammar``: made from any notation, it gives the states that constrain generation."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import llguidance

from codespec.files import StrPath, read_text
from codespec.grammar import cache, python_types, sandbox
from codespec.grammar.compiled import LIMITS, Compiled
from codespec.grammar.deep_stack import with_deep_stack
from codespec.grammar.errors import GrammarError, did_you_mean
from codespec.grammar.gbnf import gbnf
from codespec.grammar.json.blanks import SparingState
from codespec.grammar.json.engine import compile_schema
from codespec.grammar.json.positions import ValuePositions
from codespec.grammar.json.unique import UniqueState
from codespec.grammar.lark.expand import Expanded
from codespec.grammar.lark.expand import expand as expand_lark
from codespec.grammar.library import shipped, text_of
from codespec.grammar.lower.lower import lower
from codespec.grammar.regex import RegexError, translate
from codespec.grammar.rules import Rules, TokenRef, walk
from codespec.grammar.state import explain
from codespec.grammar.tokenizer import Tokenizer, token_ranges
from codespec.languages import LANGUAGES
from codespec.protocols import CodespecError, GrammarState

MAX_FILE = 4 * 1024 * 1024
"""Bytes of a grammar file."""
PLAIN = frozenset(each.grammar for each in LANGUAGES.values() if each.plain_grammar)
"""Shipped grammars without codespec's extensions, which llama.cpp reads from their ``root``."""
NOTATIONS = ("gbnf", "lark", "json")
"""The notations of grammars, by the suffixes of files; ``json`` is a JSON Schema."""

# Where the grammar forces text, llguidance's mask holds only the first token of that text's usual spelling,
# while it goes on to accept any other. A draft must see the tokens that the target may take: all of them.
_FREE = '%llguidance {"no_forcing": true}\n'
_GBNF_OPTIONS = {"strict": False, "extensions": False, "start": None, "levels": None}
_LEVELED = "leveled"  # first line of what is kept on disk
_POSITION = re.compile(r"(?:at )?(\d+)\((\d+)\): (.*)", re.DOTALL)


@dataclass(frozen=True)
class GrammarText:
    """A grammar as somebody wrote it.

    Attributes:
        notation: one of ``NOTATIONS``.
        name: file or name, for messages.
        start: the rule to start at, where the name said one.
        folder: where a Lark grammar's relative imports are read; None allows none.
        shipped: whether it comes with codespec.
    """

    notation: str
    text: str
    name: str
    start: str | None = None
    folder: str | None = None
    shipped: bool = False

    @classmethod
    def find(cls, name_or_path: StrPath | GrammarText, start: str | None = None) -> GrammarText:
        """The text of a shipped grammar by its name, or of a file; one that is found already is returned as it is.

        Args:
            name_or_path: ``NAME:RULE`` starts at another rule than ``root``.
            start: the same; it counts more than the one in the name.

        Raises:
            CodespecError: no such grammar, an unreadable or unknown kind of file.
        """
        if isinstance(name_or_path, GrammarText):
            return name_or_path
        known = shipped()
        name, start = split_start(os.fspath(name_or_path), start, known)
        path = known.get(name) or Path(name)
        if not _is_file(path):
            hint = did_you_mean(name, known) or "shipped: " + ", ".join(known)
            raise CodespecError(f"{name}: no such grammar; {hint}, or give a file")
        notation = path.suffix.lower().removeprefix(".")
        if notation not in NOTATIONS:
            names = ", ".join(f".{each}" for each in NOTATIONS)
            raise CodespecError(f"{path}: unknown kind of grammar; name it {names} (a JSON Schema)")
        text = text_of(path) if name in known else read_text(path, MAX_FILE)
        return cls(notation, text, name, start, str(path.parent), name in known)


class Grammar:
    """A grammar that generated text must match.

    Build one with ``from_gbnf``, ``from_json_schema``, ``from_type``, ``from_lark``, ``from_regex`` or ``load``; then
    ``state`` gives a fresh state for a model's tokens. Any number of threads may share a grammar.

    Attributes:
        name: file or name, for messages.
        leveled: whether the language depends on the levels of indentation that it was made with.
        warnings: differences from what the author may expect; for a JSON Schema, keywords that are ignored.
        written: notation (``gbnf``, ``json``) and text, where an engine elsewhere may understand it: plain GBNF from
            ``root`` on, or a JSON Schema.
    """

    def __init__(self, name: str, source: str | None, rules: Rules | Callable[[], Rules] | None = None) -> None:
        """``source`` is what llguidance compiles; None where ``rules`` must be lowered for each vocabulary.
        ``rules`` may be what gives them when asked."""
        self.name, self._rules, self._source = name, rules, source
        self.warnings: tuple[str, ...] = ()
        self.leveled = False
        self.written: tuple[str, str] | None = None
        self._expanded: Expanded | None = None
        self._places: ValuePositions | None = None
        self._lock = threading.Lock()
        self._compiled: weakref.WeakKeyDictionary[Tokenizer, Compiled] = weakref.WeakKeyDictionary()

    @classmethod
    def from_gbnf(
        cls,
        text: str,
        name: str = "grammar",
        strict: bool = False,
        extensions: bool = False,
        start: str | None = None,
        levels: tuple[str, ...] | None = None,
    ) -> Grammar:
        """The grammar of a GBNF text, with exactly the language that llama.cpp gives it.

        Arguments and errors as for ``codespec.grammar.gbnf.gbnf.parse``. What it is lowered to is kept on disk.
        """
        grammar = cls._from_gbnf(text, name, strict, extensions, start, levels)
        if not extensions and start in (None, "root") and not grammar.leveled:
            grammar.written = "gbnf", text
        return grammar

    @classmethod
    def _from_gbnf(
        cls, text: str, name: str, strict: bool, extensions: bool, start: str | None, levels: tuple[str, ...] | None
    ) -> Grammar:
        options = {"strict": strict, "extensions": extensions, "start": start, "levels": levels}
        key = cache.key(text, **options)
        kept = cache.load(key)
        if kept is not None:
            kind, _, source = kept.partition("\n")
            grammar = cls(name, source, lambda: gbnf.parse(text, name, strict, extensions, start, levels))
            grammar.leveled = kind == _LEVELED
            return grammar
        written = gbnf.read(text, name, strict, extensions)
        rules = written.rules_from(start, levels)
        grammar = cls._of_rules(name, rules)
        grammar.leveled = written.leveled(rules.root)
        if grammar._source is not None:
            cache.store(key, f"{_LEVELED if grammar.leveled else ''}\n{grammar._source}")
        return grammar

    @property
    def rules(self) -> Rules | None:
        """The rules of a GBNF grammar; None of the others."""
        rules = self._rules  # read once: another thread may be here as well
        if callable(rules):
            rules = self._rules = rules()
        return rules

    @classmethod
    def _of_rules(cls, name: str, rules: Rules) -> Grammar:
        if any(isinstance(node, TokenRef) for rule in rules.rules.values() for node, _ in walk(rule.body)):
            return cls(name, None, rules)
        return cls(name, _FREE + lower(rules), rules)._checked()

    @classmethod
    def from_json_schema(cls, text: str, name: str = "schema", lenient: bool = False) -> Grammar:
        """The JSON texts that satisfy a JSON Schema, properties in any order if ``warnings`` do not say otherwise; one
        space or one line break with its indentation between tokens, none before the first. ``x-guidance`` in the schema
        sets other rules, and keeps its order.

        With ``lenient``, keywords that cannot be enforced are ignored, and ``warnings`` lists them.

        Raises:
            GrammarError: not JSON, or a keyword that cannot be enforced, named by its JSON pointer.
        """
        compiled = compile_schema(text, name, lenient)
        grammar = cls(name, _FREE + compiled.source)
        grammar.warnings = tuple(f"{name}: {warning}" for warning in compiled.warnings)
        grammar._places, grammar.written = compiled.places, ("json", text)
        return grammar._checked()

    @classmethod
    def from_type(cls, kind: Any, lenient: bool = False) -> Grammar:
        """The JSON texts that a Python type can be read from: a pydantic model, dataclass, TypedDict, Enum, Literal,
        ``list[int]``, ``str | None`` and the like. Objects have the fields of the type and no others. Validators
        written in Python are not part of the grammar; ``warnings`` names them.

        Raises:
            CodespecError: pydantic, which makes the schema, is not installed.
            GrammarError: the type has no schema, or one that cannot be enforced, such as for ``Json[int]``.
        """
        text, warnings = python_types.schema_of(kind, lenient)
        name = python_types.type_name(kind)
        grammar = cls.from_json_schema(text, name, lenient)
        grammar.warnings = (*(f"{name}: {warning}" for warning in warnings), *grammar.warnings)
        return grammar

    @classmethod
    def from_lark(
        cls, text: str, name: str = "grammar", folder: StrPath | None = None, start: str | None = None
    ) -> Grammar:
        """A Lark grammar, standard or in llguidance's dialect; its terminals match as much as they can.

        Relative imports are read from ``folder`` and never from outside it; without one they are errors. ``start`` is
        the rule to start at, in place of ``start``.

        Raises:
            GrammarError: with file, line and column.
        """
        expanded = expand_lark(text, name, folder, start)
        grammar = cls(name, _FREE + expanded.text)
        grammar._expanded, grammar.warnings = expanded, tuple(expanded.warnings)
        return grammar._checked()

    @classmethod
    def from_regex(cls, pattern: str, name: str = "regex") -> Grammar:
        """The texts that match ``pattern`` (Rust's syntax, without look-around) as a whole.

        ``^`` at its start and ``$`` at its end say nothing more; lazy quantifiers match what greedy ones do; ``\\d``,
        ``\\w`` and ``\\s`` are ASCII.

        Raises:
            GrammarError: with the column of what is not supported.
        """
        try:
            pattern = translate(pattern)
        except RegexError as error:
            raise GrammarError(name, error.cause, error.remedy, 1, error.position + 1) from None
        # Under flag x a blank in a class is none.
        ascii_only = llguidance.regex_to_lark(pattern, "dws").replace(r"[ \t\n\r\f\v]", r"[\x20\t\n\r\f\v]")
        body = f"/{ascii_only}/" if pattern else '""'
        return cls(name, f"{_FREE}start: {body}")._checked()

    @classmethod
    def load(
        cls,
        name_or_path: StrPath | GrammarText,
        start: str | None = None,
        levels: tuple[str, ...] | None = None,
        strict: bool = False,
        extensions: bool = False,
        lenient: bool = False,
    ) -> Grammar:
        """A shipped grammar by its name, or a file: ``.gbnf``, ``.lark`` or ``.json`` (a JSON Schema).

        Args:
            name_or_path, start: as for ``GrammarText.find``.
            levels, strict, extensions: as for ``from_gbnf``; shipped grammars always have the extensions.
            lenient: as for ``from_json_schema``; other grammars have nothing to be lenient about.

        Raises:
            CodespecError: no such grammar, an unreadable or unknown kind of file, or an option that is not for it.
            GrammarError: what the file holds is no grammar.
        """
        source = GrammarText.find(name_or_path, start)
        text, name, start = source.text, source.name, source.start
        if source.shipped:
            grammar = cls.from_gbnf(text, name, strict, True, start, levels)
            if name in PLAIN:
                root = "root" if start in (None, "root") else f"root ::= {start}\nroot-of-all"
                grammar.written = "gbnf", re.sub(r"^root\b", root, text, count=1, flags=re.MULTILINE)
            return grammar
        if source.notation == "gbnf":
            options = {"strict": strict, "extensions": extensions, "start": start, "levels": levels}
            return cls.from_outside("gbnf", text, name, **options)
        given = {
            "strict": strict,
            "extensions": extensions,
            "levels": levels,
            "start": start if source.notation == "json" else None,
        }
        if any(given.values()):
            names = ", ".join(option for option, value in given.items() if value)
            raise CodespecError(f"{name}: {names}: not for a .{source.notation} file; leave it out")
        if source.notation == "lark":
            return cls.from_outside("lark", text, name, folder=source.folder, start=start)
        return cls.from_outside("json", text, name, lenient=lenient)

    @classmethod
    def from_outside(cls, kind: str, text: str, name: str, **options: Any) -> Grammar:
        """The grammar of a text that nobody vouches for: compiled in a child process first, with limits.

        Args:
            kind: ``gbnf``, ``json`` (a JSON Schema), ``lark`` or ``regex``.
            options: what the ``from_...`` of that kind takes besides.

        Raises:
            GrammarError: what is wrong with it, or which limit it exceeds.
        """
        if kind != "gbnf" or cache.load(cache.key(text, **{**_GBNF_OPTIONS, **options})) is None:
            sandbox.approve(kind, text, name, **options)
        return cls.from_source(kind, text, name, **options)

    @classmethod
    def from_source(cls, kind: str, text: str, name: str, **options: Any) -> Grammar:
        """The same in this process, whatever it may do to it."""
        readers: dict[str, Callable[..., Grammar]] = {
            "gbnf": cls.from_gbnf,
            "json": cls.from_json_schema,
            "lark": cls.from_lark,
            "regex": cls.from_regex,
        }
        return readers[kind](text, name, **options)

    @property
    def needs_vocabulary(self) -> bool:
        """Whether it names tokens, so that only a model's vocabulary can tell what it means."""
        return self._source is None

    def state(self, tokenizer: Tokenizer, most: int | None = None) -> GrammarState:
        """A state at the start of the grammar. The first one for a tokenizer compiles, later ones are copies.

        Args:
            most: tokens that the text may have. Under a JSON Schema the second half of them has no white space between
                tokens of JSON, so that the text comes to its end.

        Raises:
            GrammarError: the grammar needs tokens that this vocabulary does not have.
        """
        state = self._for(tokenizer).state(tokenizer)
        found: GrammarState = state if self._places is None else UniqueState(state, self._places, tokenizer)
        json_schema = self.written is not None and self.written[0] == "json"
        return found if most is None or not json_schema else SparingState(found, tokenizer, most // 2)

    def find_token_classes(self, tokenizer: Tokenizer) -> bool:
        """Compute the token classes of a large vocabulary under a GBNF grammar, which make the masks of states created
        from now on 2 to 5 times as fast; whether they do. It takes 0.2 to 3 s of processor time; the result is
        cached on disk.

        A thread does the same after some slow masks.
        """
        return self._for(tokenizer).find_token_classes(tokenizer)

    def _for(self, tokenizer: Tokenizer) -> Compiled:
        with self._lock:
            compiled = self._compiled.get(tokenizer)
            if compiled is None:
                compiled = self._compiled[tokenizer] = self._compile(tokenizer)
            return compiled

    def _compile(self, tokenizer: Tokenizer) -> Compiled:
        source = self._source
        if source is not None:
            rules = None if self._rules is None else partial(getattr, self, "rules")
            return Compiled(self.name, source, tokenizer, rules, self._refused)
        assert self.rules is not None
        try:
            lark = lower(self.rules, lambda ref: token_ranges(tokenizer, ref))
        except GrammarError as error:
            raise GrammarError(self.name, error.cause, error.remedy, error.line, error.column) from None
        return Compiled(self.name, _FREE + lark, tokenizer, None, self._refused)

    def _checked(self) -> Grammar:
        if self._source is not None:
            validate = llguidance.LLMatcher.validate_grammar_with_warnings
            failed, messages = with_deep_stack(lambda: validate(self._source, None, limits=LIMITS))
            if failed:
                raise self._refused(messages[0])
        return self

    def _refused(self, message: str) -> GrammarError:
        """llguidance's message in one line, with its position where that is one in the user's text."""
        match = _POSITION.match(message)
        cause = match[3] if match else message
        # A bad regular expression comes with a drawing of several lines; its last one says why.
        reason = re.search(r"^error: (.+)", cause, re.MULTILINE)
        cause = f"bad regular expression: {reason[1]}" if reason else explain(cause.split("\n")[0])
        at = (
            self._expanded.origin(int(match[1]) - _FREE.count("\n"), int(match[2]))
            if match and self._expanded
            else None
        )
        if at is not None:
            return GrammarError(at.file, cause, "", at.line, at.column)
        return GrammarError(self.name, cause)


def split_start(name: str, start: str | None = None, known: Iterable[str] = ()) -> tuple[str, str | None]:
    """``NAME:RULE`` as name and start symbol, where NAME is one of ``known`` or a GBNF or Lark file.

    Anything else is a name as a whole: ``C:\\x.gbnf`` is a file on Windows.
    """
    front, colon, rule = name.rpartition(":")
    if colon and rule and (front in known or front.lower().endswith((".gbnf", ".lark"))) and not _is_file(Path(name)):
        return front, start or rule
    return name, start


def _is_file(path: Path) -> bool:
    """False too where the name cannot be one, such as a grammar in place of its name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
