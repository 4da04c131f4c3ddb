"""Fields that constrain a text, in the names that people use, as a grammar."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any

from codespec.errors import CodespecError
from codespec.grammar import Grammar, shipped
from codespec.grammar.errors import OR_IGNORE
from codespec.grammar.library import to_generate
from codespec.http.apis.fields import Fields
from codespec.http.errors import HttpError
from codespec.recent import Recent

LONGEST, MOST_CHOICES = 1 << 20, 1000
_OBJECT = '{"type": "object"}'
_OR_IGNORE = ", or have it ignored: `response_format` without `strict` does that"
KEPT = 64
"""Compiled grammars that are kept."""
_NAME = re.compile(r"[\w.-]+")
_GBNF_RULE = re.compile(r"^[ \t]*[A-Za-z][\w-]*\s*::=", re.MULTILINE)


@dataclass(frozen=True)
class Constraint:
    """What a text must match.

    Attributes:
        kind: ``shipped``, ``choice``, or as of ``Grammar.from_outside``.
        text: the source, or the name; of a choice its texts, as JSON.
        field: that it came in.
        lenient: whether keywords of a schema that cannot be enforced are ignored.
    """

    kind: str
    text: str
    field: str
    lenient: bool = False

    def compile(self) -> Grammar:
        """The grammar, tried out in a child process first.

        Raises:
            HttpError: it cannot be used.
        """
        try:
            if self.kind == "shipped":
                return Grammar.load(to_generate(self.text))
            if self.kind == "choice":
                choices = " | ".join(map(_quoted, json.loads(self.text)))
                return Grammar.from_outside("gbnf", f"root ::= {choices}", self.field)
            options = {"lenient": self.lenient} if self.kind == "json" else {}
            return Grammar.from_outside(self.kind, self.text, self.field, **options)
        except CodespecError as error:
            message = str(error).replace(OR_IGNORE, _OR_IGNORE)
            raise HttpError(400, message, self.field, "invalid_grammar") from None


@dataclass(frozen=True)
class Constrained:
    """A compiled constraint, or none.

    Attributes:
        name: of the shipped grammar that it is or, as a JSON Schema, belongs to; else any name.
    """

    grammar: Grammar | None = None
    name: str = ""


FREE = Constrained()


class Grammars:
    """Compiles constraints aside from the event loop, and keeps what was used lately."""

    def __init__(self) -> None:
        self._known: Recent[Constraint, Grammar] = Recent(KEPT)

    async def of(self, constraint: Constraint | None) -> Constrained:
        """The grammar of a constraint.

        Raises:
            HttpError: it cannot be used.
        """
        if constraint is None:
            return FREE
        found = self._known.use(constraint)
        if found is None:
            found = self._known[constraint] = await asyncio.to_thread(constraint.compile)
        return Constrained(found, "json" if constraint.kind == "json" else found.name)


def constraint_of(fields: Fields) -> Constraint | None:
    """The constraint that a request asks for.

    Raises:
        HttpError: a field is wrong, or there are several.
    """
    found = [each for read in _READERS for each in read(fields)]
    if len(found) > 1:
        names = " and ".join(each.field for each in found)
        raise HttpError(fields.status, f"one constraint at a time, not {names}", found[1].field, "invalid_value")
    if found and len(found[0].text) > LONGEST:
        raise HttpError(fields.status, f"{found[0].field} is longer than {LONGEST:,} characters", found[0].field)
    return found[0] if found else None


def _response_format(fields: Fields) -> list[Constraint]:
    """OpenAI's, with the ``schema`` that llama-server also takes beside ``json_object``."""
    wanted = fields.object("response_format")
    if wanted is None:
        return []
    kind = wanted.choice("type", "text", "text", "json_object", "json_schema")
    if kind == "text":
        return []
    if kind == "json_object":
        return [_schema(wanted, "schema", _OBJECT)]
    inner = wanted.object("json_schema")
    if inner is None or "schema" not in inner:
        raise wanted.bad("json_schema", "an object with a `schema`")
    return [_schema(inner, "schema", lenient=not inner.flag("strict"))]


def _structured_outputs(fields: Fields) -> list[Constraint]:
    """vLLM's."""
    wanted = fields.object("structured_outputs")
    if wanted is None:
        return []
    found = []
    if "json" in wanted:
        found.append(_schema(wanted, "json"))
    if wanted.flag("json_object"):
        found.append(Constraint("json", _OBJECT, wanted.path("json_object")))
    if "structural_tag" in wanted:
        raise wanted.bad("structural_tag", "left out: it is not known here")
    return found + _texts(wanted, "regex", "choice", "grammar")


def _guided(fields: Fields) -> list[Constraint]:
    """vLLM's of before 0.12."""
    found = [_schema(fields, "guided_json")] if "guided_json" in fields else []
    return found + _texts(fields, "guided_regex", "guided_choice", "guided_grammar")


def _llama_server(fields: Fields) -> list[Constraint]:
    found = [_schema(fields, "json_schema")] if "json_schema" in fields else []
    return found + _texts(fields, "", "", "grammar")


_READERS = (_response_format, _structured_outputs, _guided, _llama_server)


def _texts(fields: Fields, regex: str, choice: str, grammar: str) -> list[Constraint]:
    """What stands in fields of these names; an empty text is none."""
    found = []
    if regex and fields.text(regex):
        found.append(Constraint("regex", fields.text(regex), fields.path(regex)))
    if choice and choice in fields:
        found.append(_choice(fields, choice))
    if fields.text(grammar).strip():
        found.append(_grammar(fields, grammar))
    return found


def _choice(fields: Fields, name: str) -> Constraint:
    choices = fields.texts(name, MOST_CHOICES, LONGEST)
    if not choices:
        raise fields.bad(name, f"a list of 1 to {MOST_CHOICES} texts")
    return Constraint("choice", json.dumps(choices), fields.path(name))


def _quoted(text: str) -> str:
    """A literal of GBNF."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}" if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def _grammar(fields: Fields, field: str) -> Constraint:
    """A grammar by its source, or a shipped one by its name, but never a file's."""
    text = fields.text(field)
    name = text.strip()
    if name in shipped() or name.partition(":")[0] in shipped():
        return Constraint("shipped", name, fields.path(field))
    if _NAME.fullmatch(name):
        raise fields.bad(field, f"a grammar, or the name of a shipped one: {', '.join(shipped())}")
    return Constraint("gbnf" if _GBNF_RULE.search(text) else "lark", text, fields.path(field))


def _schema(fields: Fields, name: str, default: str = "", lenient: bool = False) -> Constraint:
    value: Any = fields.any(name)
    if value is not None and not isinstance(value, (str, dict, bool)):
        raise fields.bad(name, "a JSON Schema")
    text = default if value is None else value if isinstance(value, str) else json.dumps(value)
    return Constraint("json", text, fields.path(name), lenient)
