"""A JSON Schema as a grammar for llguidance, with the engine's own complaints traced to a keyword."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import llguidance

from codespec.grammar.deep_stack import with_deep_stack
from codespec.grammar.errors import OR_IGNORE, GrammarError
from codespec.grammar.json.order import Found, any_order, several_names
from codespec.grammar.json.positions import ValuePositions, for_engine
from codespec.grammar.json.refs import References, Schema, escape
from codespec.grammar.json.schema import COUNTS, HANDLERS, rewrite

_ORDERED = "some properties must stand in the schema's order"
_NOTHING = "Unsatisfiable schema"
_MOST_IMPOSSIBLE = 64  # parts of a schema
_BLAME_SECONDS = 0.7  # to find the keyword behind an error of the engine
# Between the tokens of a JSON text: any layout that a printer makes, but no endless run for a weak model to fall into.
JSON_SPACE = r"( |\r?\n[ \t]{0,60})?"
_NAMING = ("properties", "patternProperties", "required", "dependentRequired", "propertyNames")


class Compiled(NamedTuple):
    """A schema for the engine.

    Attributes:
        source: a Lark grammar for llguidance whose ``start`` is what the schema allows.
        warnings: what is not as the author may expect.
        places: where items must differ besides, which ``json_unique`` enforces; None for nowhere.
    """

    source: str
    warnings: list[str]
    places: ValuePositions | None


def compile_schema(text: str, name: str, lenient: bool = False, single: bool = False) -> Compiled:
    """A JSON Schema for the engine.

    With ``single`` it is one ``%json``, and properties come in the schema's order; items that must differ are
    an error then.

    Raises:
        GrammarError: not JSON, not a schema, or a keyword that cannot be enforced.
    """
    schema = parse(text, name)
    warnings: list[str] = []
    while True:
        rewritten, found = rewrite(schema, name, lenient, not single)
        found = list(dict.fromkeys(found))
        if rewritten is False:
            raise GrammarError(name, "no value satisfies the schema", "leave room for at least one")
        source = _source(rewritten, schema, name)
        free, kept, loose = ("", [], True) if single else _any_order(source, rewritten, schema)
        if free and _refusal(free) is None:
            return Compiled(free, [*warnings, *found, *kept], _places(rewritten) if loose else None)
        cause = _refusal(source)
        if cause is None:
            order = [_ORDERED] if free and several_names(rewritten) else kept
            return Compiled(source, warnings + found + order, _places(rewritten))
        where = _blame(schema, name, lenient, cause)
        if cause.startswith(_NOTHING):
            place = f"{where}: " if where else ""
            reason = cause.removeprefix(_NOTHING).removeprefix(": ")
            raise GrammarError(name, f"{place}no value satisfies the schema ({reason})", "leave room for at least one")
        if where is None or not lenient:
            remedy = f"write it in other keywords{OR_IGNORE}" if where else ""
            raise GrammarError(name, f"{where}: {cause}" if where else cause, remedy)
        warnings.append(f"{where}: {cause}; ignored")
        schema = _without(schema, where)


def parse(text: str, name: str) -> Schema:
    """The schema in ``text``.

    Raises:
        GrammarError: not JSON, or no schema.
    """
    try:
        schema = json.loads(text)
        written = json.dumps(schema, ensure_ascii=False)
    except json.JSONDecodeError as error:
        raise GrammarError(name, f"not JSON: {error.msg}", "", error.lineno, error.colno) from None
    except RecursionError:
        raise GrammarError(name, "the schema is nested too deeply") from None
    except ValueError:  # Python's limit on digits
        raise GrammarError(name, "a number has too many digits", "shorten it") from None
    if re.search(r"[\ud800-\udfff]", written):
        raise GrammarError(name, "half of a surrogate pair stands in a text", "leave it out; no UTF-8 holds it")
    if not isinstance(schema, dict | bool):
        raise GrammarError(name, "a JSON Schema is an object", "write {...}, true or false")
    return schema


def _places(schema: Schema) -> ValuePositions | None:
    places = ValuePositions(schema) if isinstance(schema, dict) else None
    return places if places is not None and places.start else None


def _source(rewritten: Schema, schema: Schema, name: str) -> str:
    """One ``%json`` for a rewritten schema.

    Args:
        schema: as it was before.
    """
    options = schema.get("x-guidance", {}) if isinstance(schema, dict) else {}
    if not isinstance(options, dict):
        raise GrammarError(name, "/x-guidance: must be an object", 'such as {"whitespace_flexible": false}')
    options = dict(options)
    if "whitespace_flexible" not in options:
        options.setdefault("whitespace_pattern", JSON_SPACE)
    # In names that are not listed, llguidance takes "\u0061" for another name than "a".
    if isinstance(schema, dict) and any(_mentions(schema, keyword) for keyword in _NAMING):
        options.setdefault("json_allowed_escapes", 'nrbtf\\"')
    # Last: llguidance takes the options out and moves the schema's last keyword to their place.
    plain = for_engine(rewritten)
    body = {**(plain if isinstance(plain, dict) else {}), "x-guidance": options}
    return f"start: %json {json.dumps(body)}"


def _any_order(source: str, rewritten: Schema, schema: Schema) -> tuple[str, list[str], bool]:
    """The grammar with properties in any order, empty if there is none; warnings; whether items must differ besides."""
    options = json.loads(source.removeprefix("start: %json "))["x-guidance"]
    own_options = isinstance(schema, dict) and "x-guidance" in schema
    found = None if own_options else _satisfiable(rewritten, options)
    if found is None:
        return "", [_ORDERED] if several_names(rewritten) else [], True
    return found.text, [_ORDERED] if found.ordered else [], found.loose


def _satisfiable(rewritten: Schema, options: dict[str, Any]) -> Found | None:
    """``any_order`` without the parts that no value satisfies: where that is one of several, the others remain."""
    impossible: set[str] = set()
    while True:
        found = any_order(rewritten, options, impossible)
        refusal = re.match(rf"at (\d+)\(\d+\): .*{_NOTHING}", _refusal(found.text) or "") if found is not None else None
        if found is None or refusal is None or len(impossible) > _MOST_IMPOSSIBLE:
            return found
        impossible.add(found.text.split("\n")[int(refusal[1]) - 1].partition(": ")[2])


def _mentions(node: Any, keyword: str) -> bool:
    if isinstance(node, dict):
        return keyword in node or any(_mentions(item, keyword) for item in node.values())
    return isinstance(node, list) and any(_mentions(item, keyword) for item in node)


def _refusal(source: str) -> str | None:
    """Why llguidance refuses the grammar; None where it takes it."""
    validate = llguidance.LLMatcher.validate_grammar_with_warnings
    failed, messages = with_deep_stack(lambda: validate(source, None))
    if not failed:
        return None
    message = messages[0].removeprefix("at 1(8): ").split("\n")[0].removeprefix("failed to compile JSON schema: ")
    reason = re.search(r"^error: (.+)", messages[0], re.MULTILINE)
    return reason[1] if reason else message


def _blame(schema: Schema, name: str, lenient: bool, cause: str) -> str | None:
    """The JSON pointer of a keyword without which the engine does not complain of ``cause``."""
    deadline = time.monotonic() + _BLAME_SECONDS
    for where in sorted(_keywords(schema), key=lambda pointer: -pointer.count("/")):
        if time.monotonic() > deadline:
            return None
        try:
            less = _without(schema, where)
            source = _source(rewrite(less, name, lenient, True)[0], less, name)
        except GrammarError:
            continue
        if _refusal(source) != cause:
            return where
    return None


def _keywords(schema: Schema) -> Iterator[str]:
    """Pointers to all keywords that say which values are valid."""
    for node, place in References(schema).schemas():
        for keyword in node:
            if keyword in HANDLERS or keyword in COUNTS:
                yield f"{place.pointer}/{escape(keyword)}"


def _without(schema: Any, where: str) -> Schema:
    """A copy of ``schema`` without the keyword at the pointer ``where``."""
    copied = json.loads(json.dumps(schema))
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in where.split("/")[1:]]
    node = copied
    for part in path:
        node = node[int(part)] if isinstance(node, list) else node[part]
    del node[last]
    return copied  # type: ignore[no-any-return]
