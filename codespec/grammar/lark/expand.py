"""A Lark grammar as one text for llguidance: imports and templates expanded, the notation converted to its own.

llguidance takes no templates, no relative imports, no priorities, no ``%declare``, ``%override`` and ``%extend``, and
reads regular expressions as Rust does. Positions in its messages are those of the expanded text; ``Expanded.origin``
leads back.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from codespec.files import StrPath
from codespec.grammar.errors import GrammarError, did_you_mean
from codespec.grammar.json.engine import compile_schema
from codespec.grammar.lark.source import LarkDefinition, LarkToken, Loader, Module, closing, is_terminal
from codespec.grammar.regex import Dialect, RegexError, translate

MAX_INSTANCES, MAX_NESTED = 1000, 50
"""Instances of templates; instances that an instance needs, one within the other."""
_EXTENSIONS = ("json", "special", "parameter", "grammar", "nested")
_BAD_ESCAPE = re.compile(
    r"""(?<!\\)(?:\\\\)*\\(?![\\"/abfnrtv]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U(?:000[0-9A-Fa-f]|0010)[0-9A-Fa-f]{4})"""
)


@dataclass
class Expanded:
    """A grammar ready for llguidance.

    Attributes:
        text: one definition in each line.
        warnings: with positions.
        definitions: what ``text`` says, still as tokens.
        ignored: bodies of ``%ignore``.
        tokens: (line, byte column in ``text``, token), in order.
    """

    text: str = ""
    warnings: list[str] = field(default_factory=list)
    definitions: dict[str, LarkDefinition] = field(default_factory=dict)
    ignored: list[list[LarkToken]] = field(default_factory=list)
    tokens: list[tuple[int, int, LarkToken]] = field(default_factory=list)

    def origin(self, line: int, column: int) -> LarkToken | None:
        """The token of the author's text that stands at a position of ``text``."""
        before = [token for at, start, token in self.tokens if at == line and start <= max(column, 1)]
        first = next((token for at, _, token in self.tokens if at >= line), None)
        return before[-1] if before else first


def expand(text: str, name: str, folder: StrPath | None = None, start: str | None = None) -> Expanded:
    """``text`` with everything that it imports and all instances of its templates.

    Args:
        folder: where relative imports are sought; None: they are errors.
        start: the start symbol, in place of ``start``.

    Raises:
        GrammarError: with file, line and column.
    """
    beside = Path(folder) if folder is not None else None
    try:
        return _Expander(Loader(beside).load(text, name, beside), start).run()
    except RecursionError:
        raise GrammarError(name, "definitions refer to one another too deeply", "shorten the chain") from None


class _Expander:
    def __init__(self, module: Module, start: str | None) -> None:
        self.module, self.start = module, start
        self.result = Expanded(ignored=module.ignored)
        self.instances: dict[str, str] = {}
        self.depth = 0
        bodies = [definition.body for definition in module.definitions.values()]
        extended = any(token.kind in _EXTENSIONS for body in bodies for token in body) or module.options
        self.dialect: Dialect = "rust" if extended else "python"

    def run(self) -> Expanded:
        definitions = self.module.definitions
        self._check_start()
        for definition in [item for item in definitions.values() if not item.params]:
            self._add(definition, definition.name, {})
        self.result.ignored = [self._instantiated(body, {}) for body in self.module.ignored]
        self._check_terminals()
        self._write()
        return self.result

    def _check_start(self) -> None:
        start = self.start or "start"
        if start not in self.module.definitions:
            rules = [name for name, item in self.module.definitions.items() if not item.terminal and not item.params]
            remedy = did_you_mean(start, rules) or (f"add: {start}: {rules[0]}" if rules else f"add: {start}: …")
            raise GrammarError(self.module.file, f"there is no rule {start!r}", remedy)

    # Templates

    def _add(self, definition: LarkDefinition, name: str, arguments: dict[str, list[LarkToken]]) -> None:
        body = self._instantiated(definition.body, arguments)
        made = LarkDefinition(name, definition.at, [], definition.attributes, body, definition.priority)
        self.result.definitions[name] = made
        if definition.priority is not None and definition.terminal and name not in self.module.imported:
            at = definition.priority
            remedy = f"where others must win, write {name}: … & ~OTHER"
            cause = "priority ignored: of terminals that match the same text, all are taken"
            self.result.warnings.append(f"{at.file}:{at.line}:{at.column}: {cause}; {remedy}")

    def _instantiated(self, body: list[LarkToken], arguments: dict[str, list[LarkToken]]) -> list[LarkToken]:
        out: list[LarkToken] = []
        at = 0
        while at < len(body):
            token = body[at]
            if token.text == "->":
                at += 2
                continue
            if token.kind == "name" and token.text in arguments:
                out += arguments[token.text]
            elif token.kind == "grammar":
                raise token.error(f"there is no other grammar {token.text}", "write its rules here, or %import them")
            elif token.kind == "name":
                token, at = self._reference(body, at, arguments)
                out.append(token)
            else:
                out.append(token)
            at += 1
        return out

    def _reference(
        self, body: list[LarkToken], at: int, arguments: dict[str, list[LarkToken]]
    ) -> tuple[LarkToken, int]:
        """The token that refers to a definition, an instance of a template made first; and its last index."""
        token = body[at]
        usage = at + 2 < len(body) and body[at + 1].text == "{" and body[at + 2].kind != "number"
        usage = usage and body[at + 2].text != ","
        definition = self.module.definitions.get(token.text)
        if definition is None:
            raise self._undefined(token)
        if not usage:
            if definition.params:
                params = ", ".join(definition.params)
                raise token.error(f"{token.text!r} is a template", f"write {token.text}{{{params}}}")
            return token, at
        end = closing(body, at + 1)
        values = [self._instantiated(part, arguments) for part in _split(body[at + 2 : end])]
        if len(values) != len(definition.params):
            count = len(definition.params)
            raise token.error(f"{token.text!r} takes {count} arguments, not {len(values)}", f"give {count}")
        return self._instance(token, definition, values), end

    def _instance(self, token: LarkToken, definition: LarkDefinition, values: list[list[LarkToken]]) -> LarkToken:
        key = f"{definition.name} {[[item.text for item in value] for value in values]}"
        name = self.instances.get(key)
        if name is None:
            if len(self.instances) >= MAX_INSTANCES or self.depth >= MAX_NESTED:
                remedy = "a template may use itself only with the same arguments"
                raise token.error(f"template {definition.name!r} needs ever new instances", remedy)
            name = self.instances[key] = f"{definition.name}__{len(self.instances)}"
            self.depth += 1
            self._add(definition, name, dict(zip(definition.params, values, strict=True)))
            self.depth -= 1
        return LarkToken("name", name, token.file, token.line, token.column)

    def _undefined(self, token: LarkToken) -> GrammarError:
        if token.text in self.module.declared:
            at = self.module.declared[token.text]
            remedy = f"define it: {token.text}: …" if is_terminal(token.text) else "define it"
            return at.error(f"{token.text} is only declared: no text of the grammar can match it", remedy)
        if token.text[0] in "?!":
            raise token.error(f"{token.text!r} is read as the name of a rule", f"write a blank after {token.text[0]}")
        kind = "terminal" if is_terminal(token.text) else "rule"
        remedy = did_you_mean(token.text, self.module.definitions) or f"add: {token.text}: …"
        return token.error(f"{kind} {token.text!r} is not defined", remedy)

    # Terminals

    def _check_terminals(self) -> None:
        for definition in self.result.definitions.values():
            if not definition.terminal:
                continue
            for token in definition.body:
                if token.kind == "name" and not is_terminal(token.text):
                    remedy = "make it a terminal, in capitals, or make this one a rule"
                    raise token.error(f"terminal {definition.name!r} uses the rule {token.text!r}", remedy)
        done: set[str] = set()
        for name in self.result.definitions:
            if is_terminal(name):
                self._check_circle(name, [], done)

    def _check_circle(self, name: str, path: list[str], done: set[str]) -> None:
        if name in path:
            at = self.result.definitions[name].at
            raise at.error(f"terminal {name!r} refers to itself", "make it a rule, in small letters")
        if name in done:
            return
        for token in self.result.definitions[name].body:
            if token.kind == "name" and token.text in self.result.definitions:
                self._check_circle(token.text, [*path, name], done)
        done.add(name)

    # Writing

    def _write(self) -> None:
        lines = [token.text.replace("\n", " ") for token in self.module.options]
        for number, token in enumerate(self.module.options, 1):
            self.result.tokens.append((number, 1, token))
        start = self.start
        for definition in self.result.definitions.values():
            name = "start" if definition.name == start else definition.name
            name = "start__replaced" if name == "start" and start not in (None, definition.name) else name
            head = name + "".join(token.text for token in definition.attributes) + ": "
            lines.append(self._line(head, definition.at, definition.body, _count(lines) + 1))
        for body in self.result.ignored:
            lines.append(self._line("%ignore ", body[0], body, _count(lines) + 1) if body else "")
        self.result.text = "\n".join(lines) + "\n"

    def _line(self, head: str, at: LarkToken, body: list[LarkToken], number: int) -> str:
        out = head
        self.result.tokens.append((number, 1, at))
        for token in body:
            self.result.tokens.append((number, len(out.encode()) + 1, token))
            text = self._token(token)
            out += text if token.text in ("{", ",", "}", "..", "~") or token.kind == "parameter" else f" {text}"
        return out

    def _token(self, token: LarkToken) -> str:
        if token.kind == "string":
            return _string(token)
        if token.kind == "regex":
            return self._regex(token)
        if token.kind == "json" and token.text.startswith("%json"):
            return self._schema(token)
        if token.kind == "json":
            return token.text.replace("\n", " ")
        if token.kind == "name" and self.start:
            name = token.text.lstrip("!?")
            if name == "start" and self.start != "start":
                return "start__replaced"
            return "start" if name == self.start else name
        return token.text

    def _regex(self, token: LarkToken) -> str:
        body, _, flags = token.text[1:].rpartition("/")
        if "l" in flags:
            raise token.error("flag l is not supported", "write the characters out as a class")
        try:
            pattern = translate(body, self.dialect, lazy=False)
        except RegexError as error:
            column = token.column + 1 + error.position
            raise GrammarError(token.file, error.cause, error.remedy, token.line, column) from None
        if not pattern:
            return '""'
        pattern = re.sub(r"\\.|/", lambda part: "\\/" if part[0] == "/" else part[0], pattern, flags=re.DOTALL)
        return f"/{pattern}/{''.join(flag for flag in flags if flag in 'isx')}"

    def _schema(self, token: LarkToken) -> str:
        try:
            source, warnings, _ = compile_schema(token.text[len("%json") :], token.file, single=True)
        except GrammarError as error:
            raise token.error(error.cause, error.remedy) from None
        self.result.warnings += [f"{token.file}:{token.line}:{token.column}: {warning}" for warning in warnings]
        return source.removeprefix("start: ")


def _count(lines: list[str]) -> int:
    """Lines so far; a nested grammar keeps its own line breaks."""
    return sum(line.count("\n") + 1 for line in lines)


def _split(tokens: list[LarkToken]) -> list[list[LarkToken]]:
    """The arguments of a template."""
    parts: list[list[LarkToken]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "op":
            depth += (token.text in "([{") - (token.text in ")]}")
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def string_value(token: LarkToken) -> tuple[str, bool]:
    """The text that a string token stands for, and whether its case does not matter."""
    written, blind = (token.text[:-1], True) if token.text.endswith("i") else (token.text, False)
    if not re.search(_BAD_ESCAPE, written):
        return ast.literal_eval(written.replace("\\/", "/")), blind
    raise token.error("unknown escape in the string", 'known: \\" \\\\ \\n \\r \\t \\f \\xHH \\uHHHH')


def _string(token: LarkToken) -> str:
    value, blind = string_value(token)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise token.error("half of a surrogate pair is no character", "write the whole character") from None
    return json.dumps(value).replace("\x7f", "\\u007f") + ("i" if blind else "")
