"""Lark grammars as text: tokens with positions, definitions, and the modules that they import.

Both dialects are read: standard Lark as the ``lark`` package has it, and llguidance's extensions. What is made of it
stands in ``lark_expand``.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from codespec.grammar.errors import GrammarError, did_you_mean

MAX_TEXT, MAX_MODULES, MAX_STATEMENTS = 1024 * 1024, 50, 4000
"""Characters of one file; files of one grammar; statements of one file. A chain of rules costs quadratic time."""

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\f]+|\\[ ]*\r?\n|(?://|\#)[^\n]*)
    | (?P<nested>%lark\s*\{)
    | (?P<json>%(?:json|regex|llguidance))
    | (?P<condition>%if\b[^\n|]*)
    | (?P<directive>%[a-z]+)
    | (?P<string>"(?:\\.|[^"\\\n])*"i?)
    | (?P<regex>/(?!/)(?:\\.|[^/\\\n])+/[imslux]*)
    | (?P<special><[^<>\s]+>)
    | (?P<parameter>::\s*(?:\w+(?:\([^()\n]*\))?))
    | (?P<grammar>@[a-zA-Z0-9_\-]+)
    | (?P<name>[!?]{0,2}_*[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)
    | (?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)
    | (?P<newline>(?:\r?\n)+)
    | (?P<op>->|\.\.|[+*?|()\[\]{},.:~&=])
    """,
    re.VERBOSE | re.DOTALL,
)
_NESTED_END = re.compile(r"\n[ \t]*\}")
_BLANK = re.compile(r"\s*")
_NAME = re.compile(r"[!?]{0,2}_*(?:[a-z][_a-z0-9\-]*|[A-Z][_A-Z0-9\-]*)")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class LarkToken:
    """``kind`` is a group of the token expression; line and column from 1."""

    kind: str
    text: str
    file: str
    line: int
    column: int

    def error(self, cause: str, remedy: str = "") -> GrammarError:
        return GrammarError(self.file, cause, remedy, self.line, self.column)


@dataclass
class LarkDefinition:
    """One rule or terminal.

    Attributes:
        name: without modifiers.
        at: the token of its name.
        params: of a template.
        attributes: what llguidance has between the name and the colon: ``[lazy]``, ``::_``.
        body: everything after the colon.
        priority: the token of its priority, if it has one.
    """

    name: str
    at: LarkToken
    params: list[str]
    attributes: list[LarkToken]
    body: list[LarkToken]
    priority: LarkToken | None = None

    @property
    def terminal(self) -> bool:
        return is_terminal(self.name)


@dataclass
class Module:
    """The definitions of one file, its imports included under the names that they have here."""

    file: str
    definitions: dict[str, LarkDefinition] = field(default_factory=dict)
    ignored: list[list[LarkToken]] = field(default_factory=list)
    options: list[LarkToken] = field(default_factory=list)
    declared: dict[str, LarkToken] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)


def is_terminal(name: str) -> bool:
    """Names in capitals are terminals, others rules."""
    return name.lstrip("_")[:1].isupper()


def tokenize(text: str, file: str) -> list[LarkToken]:
    """The tokens of ``text`` without blanks and comments.

    Raises:
        GrammarError: a character that begins no token, or JSON that is none.
    """
    tokens: list[LarkToken] = []
    at, line, line_start = 0, 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        here = LarkToken("", text[at], file, line, at - line_start + 1)
        if match is None:
            raise here.error(*_unreadable(text, at))
        kind, end = str(match.lastgroup), match.end()
        if kind == "json":
            end = _json_end(text, end, here)
        elif kind == "nested":
            end = _nested_end(text, end, here)
        if kind == "name" and not _NAME.fullmatch(match[0]):
            remedy = "write rules in small letters, terminals in capitals"
            raise here.error(f"the name {match[0]!r} mixes small letters and capitals", remedy)
        if kind != "blank":
            tokens.append(LarkToken(kind, text[at:end], file, line, here.column))
        newlines = text.count("\n", at, end)
        if newlines:
            line, line_start = line + newlines, text.rindex("\n", at, end) + 1
        at = end
    return tokens


def _json_end(text: str, start: int, here: LarkToken) -> int:
    blank = _BLANK.match(text, start)
    start = blank.end() if blank else start
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (json.JSONDecodeError, RecursionError) as error:
        message = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise here.error(f"no JSON after this directive: {message}", "write an object in braces") from None


def _nested_end(text: str, start: int, here: LarkToken) -> int:
    found = _NESTED_END.search(text, start)
    if found is None:
        raise here.error("the nested grammar is not closed", "add } at the start of a line")
    return found.end()


def _unreadable(text: str, at: int) -> tuple[str, str]:
    char = text[at]
    if char == '"':
        return "the string is not closed", 'add " on the same line; a line break is written \\n'
    if char == "/":
        return "the regular expression is not closed", "add / on the same line; / itself is written \\/"
    if char == "'":
        return "strings stand in double quotes", 'write "…"'
    return f"unexpected character {char!r}", "see the notation in docs/grammar.md"


class Loader:
    """Reads a grammar and, from files beside it and the ``lark`` package's own, what it imports."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder.resolve() if folder else None
        self.modules: dict[str, Module] = {}
        self._loading: list[str] = []

    def load(self, text: str, file: str, folder: Path | None = None) -> Module:
        """The module in ``text``; relative imports are sought in ``folder``.

        Raises:
            GrammarError: with line and column.
        """
        if len(text) > MAX_TEXT:
            raise GrammarError(file, "the grammar is too large", f"at most {MAX_TEXT} characters are allowed")
        module = Module(file)
        for count, statement in enumerate(_statements(tokenize(text, file))):
            if count == MAX_STATEMENTS:
                raise GrammarError(file, "the grammar is too large", f"at most {MAX_STATEMENTS} rules are allowed")
            self._statement(module, statement, folder)
        return module

    def _statement(self, module: Module, tokens: list[LarkToken], folder: Path | None) -> None:
        first = tokens[0]
        if first.kind == "name":
            _define(module, tokens)
        elif first.kind == "json" and first.text.startswith("%llguidance"):
            module.options.append(first)
        elif first.text == "%ignore":
            module.ignored.append(tokens[1:])
        elif first.text == "%import":
            self._import(module, tokens, folder)
        elif first.text == "%declare":
            for token in tokens[1:]:
                module.declared[token.text] = token
        elif first.text in ("%override", "%extend") and len(tokens) > 1:
            _change(module, tokens)
        else:
            known = ["%ignore", "%import", "%declare", "%override", "%extend", "%llguidance", "%json", "%regex"]
            hint = did_you_mean(first.text, known) if first.kind == "directive" else "write NAME: … on one line"
            raise first.error(f"{first.text[:20]!r} begins no statement", hint)

    def _import(self, module: Module, tokens: list[LarkToken], folder: Path | None) -> None:
        path, names = _import_path(tokens)
        source = self._module(tokens, path, folder)
        prefix = "__".join(part for part in path if part != ".")
        for wanted, local in names:
            if wanted.text not in source.definitions:
                remedy = did_you_mean(wanted.text, source.definitions) or "define it there"
                raise wanted.error(f"{source.file} defines no {wanted.text}", remedy)
            if local.text in module.definitions and local.text not in module.imported:
                raise local.error(f"{local.text!r} is defined more than once", "import it under another name with ->")
            _copy(source, wanted.text, local, prefix, module)

    def _module(self, tokens: list[LarkToken], path: list[str], folder: Path | None) -> Module:
        at, relative = tokens[1], path[0] == "."
        name = "/".join(path[1:] if relative else path)
        if relative and (folder is None or self.folder is None):
            raise at.error("a relative import, but the grammar is not a file", "give the grammar as a file")
        file = (folder / f"{name}.lark").resolve() if relative and folder else None
        if file and self.folder and self.folder not in file.parents:
            raise at.error(f"{name}.lark is outside the folder of the grammar", "copy it beside the grammar")
        key = str(file) if file else f"lark/grammars/{name}.lark"
        if key in self._loading:
            raise at.error(f"{name}.lark imports itself", "move what both need to a third file")
        if key not in self.modules:
            if len(self.modules) >= MAX_MODULES:
                raise at.error("too many imports", f"at most {MAX_MODULES} files are allowed")
            self._loading.append(key)
            self.modules[key] = self.load(_read(file, name, at), key, file.parent if file else None)
            self._loading.pop()
        return self.modules[key]


def _read(file: Path | None, name: str, at: LarkToken) -> str:
    if file is None:
        resource = importlib.resources.files("lark").joinpath("grammars", f"{name}.lark")
        if not resource.is_file():
            known = ", ".join(("common", "lark", "python", "unicode"))
            raise at.error(
                f"there is no library grammar {name!r}", f"known: {known}; a file beside it: %import .{name}.X"
            )
        return _REPAIRED.get(name, str)(resource.read_text("utf-8"))
    try:
        # Opening a pipe would wait for ever, and a link may lead anywhere by now.
        if not file.is_file() or file.resolve() != file or file.stat().st_size > MAX_TEXT:
            raise at.error(f"{file} is no file, a link, or larger than {MAX_TEXT:,} bytes", "check the path")
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise at.error(f"{file} cannot be read: {type(error).__name__}", "check the path; it must be UTF-8") from None


def _common(text: str) -> str:
    """Lark's common terminals, with two that need lazy quantifiers or look-behind written without."""
    text = re.sub(r"(?m)^ESCAPED_STRING *:.*$", lambda _: r'ESCAPED_STRING: /"(?:[^"\\\n]|\\[^\n])*"/', text)
    text = re.sub(r"(?m)^_STRING(?:_ESC)?_INNER:.*$", "", text)
    return re.sub(r"(?m)^C_COMMENT:.*$", lambda _: r"C_COMMENT: /\/\*[^*]*\*+(?:[^\/*][^*]*\*+)*\//", text)


_REPAIRED = {"common": _common}


def _statements(tokens: list[LarkToken]) -> Iterator[list[LarkToken]]:
    """Statements end at a line break, except inside brackets and before ``|``."""
    current: list[LarkToken] = []
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "newline":
            following = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if current and depth <= 0 and following != "|":
                yield current
                current, depth = [], 0
            continue
        if token.kind == "op":
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
        current.append(token)
    if current:
        yield current


def _define(module: Module, tokens: list[LarkToken], replace: bool = False) -> LarkDefinition:
    made = _definition(tokens)
    known = module.definitions.get(made.name)
    if known is not None and not replace:
        raise made.at.error(
            f"{made.name!r} is defined more than once", "join both with |, or write %extend or %override"
        )
    if made.name.startswith("__"):
        raise made.at.error("names that begin with two underscores are reserved", "choose another name")
    module.definitions[made.name] = made
    module.imported.discard(made.name)
    return made


def _definition(tokens: list[LarkToken]) -> LarkDefinition:
    """NAME {PARAMS} .PRIORITY [ATTRIBUTES] ::_ : BODY"""
    name = tokens[0].text.lstrip("!?")
    params: list[str] = []
    attributes: list[LarkToken] = []
    priority, at = None, 1
    while at < len(tokens) and tokens[at].text != ":":
        token = tokens[at]
        if token.text == "{":
            end = closing(tokens, at)
            params = [inner.text for inner in tokens[at + 1 : end] if inner.kind == "name"]
            at = end
        elif token.text == "." and at + 1 < len(tokens) and tokens[at + 1].kind == "number":
            priority, at = tokens[at + 1], at + 1
        elif token.text == "[":
            end = closing(tokens, at)
            attributes += tokens[at : end + 1]
            at = end
        elif token.kind == "parameter":
            attributes.append(token)
        else:
            raise token.error(f"{token.text[:20]!r} before the colon of {name!r}", f"write {name}: …")
        at += 1
    if at >= len(tokens):
        raise tokens[0].error(f"no colon after {name!r}", f"write {name}: …")
    return LarkDefinition(name, tokens[0], params, attributes, tokens[at + 1 :], priority)


def closing(tokens: list[LarkToken], start: int) -> int:
    """The index of the bracket that closes the one at ``start``."""
    depth = 0
    for index in range(start, len(tokens)):
        if tokens[index].kind == "op":
            depth += (tokens[index].text in _OPEN) - (tokens[index].text in _CLOSE)
            if depth == 0:
                return index
    raise tokens[start].error(f"{tokens[start].text!r} is not closed", "add the closing bracket")


def _change(module: Module, tokens: list[LarkToken]) -> None:
    """``%override`` and ``%extend``."""
    made = _definition(tokens[1:])
    known = module.definitions.get(made.name)
    if known is None:
        raise made.at.error(f"{tokens[0].text} of {made.name!r}, which is not defined", "import or define it first")
    if tokens[0].text == "%override":
        _define(module, tokens[1:], replace=True)
    else:
        bar = LarkToken("op", "|", made.at.file, made.at.line, made.at.column)
        module.definitions[made.name] = LarkDefinition(
            made.name, known.at, known.params, known.attributes, [*made.body, bar, *known.body], known.priority
        )


def _import_path(tokens: list[LarkToken]) -> tuple[list[str], list[tuple[LarkToken, LarkToken]]]:
    """The parts of the path, ``.`` first where it is relative, and pairs of the name there and here."""
    path: list[LarkToken] = []
    at = 1
    while at < len(tokens) and (tokens[at].kind == "name" or tokens[at].text in (".", "..")):
        path.append(tokens[at])
        at += 1
    parts = [token.text for token in path if token.kind == "name"]
    if path and path[0].text == "..":
        raise path[0].error("imports from an outer folder are not allowed", "copy the file beside the grammar")
    relative = ["."] if path and path[0].text == "." else []
    rest = tokens[at:]
    if rest and rest[0].text == "(" and parts:
        return relative + parts, [(token, token) for token in rest if token.kind == "name"]
    if len(parts) < 2:
        raise tokens[0].error("an import needs a file and a name", "write %import common.NUMBER or %import .file.rule")
    wanted = path[-1]
    local = rest[1] if len(rest) > 1 and rest[0].text == "->" else wanted
    return relative + parts[:-1], [(wanted, local)]


def _copy(source: Module, wanted: str, local: LarkToken, prefix: str, module: Module) -> None:
    """``wanted`` of ``source`` under the name ``local``, with what it needs under names that nobody else has."""
    names: dict[str, str] = {wanted: local.text}
    queue = [wanted]
    while queue:
        current = queue.pop()
        definition = source.definitions[current]
        for token in definition.body:
            name = token.text
            if (
                token.kind == "name"
                and name in source.definitions
                and name not in names
                and name not in definition.params
            ):
                names[name] = _mangled(prefix, name)
                queue.append(name)
            elif token.kind == "name" and name in source.declared and name not in source.definitions:
                module.declared.setdefault(name, source.declared[name])
    for original, renamed in names.items():
        definition = source.definitions[original]
        body = [
            LarkToken(t.kind, names[t.text], t.file, t.line, t.column) if t.kind == "name" and t.text in names
            and t.text not in definition.params else t
            for t in definition.body
        ]  # fmt: skip
        at = local if original == wanted else definition.at
        module.definitions[renamed] = LarkDefinition(
            renamed, at, definition.params, definition.attributes, body, definition.priority
        )
        module.imported.add(renamed)


def _mangled(prefix: str, name: str) -> str:
    hidden = "_" if name.startswith("_") else ""
    joined = f"{prefix}__{name.lstrip('_')}"
    return hidden + (joined.upper() if is_terminal(name) else joined.lower())
