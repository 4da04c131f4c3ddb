"""A JSON Schema as a grammar for llguidance, with the engine's own complaints traced to a keyword."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import llguidance

from codespec.grammar.deep import with_deep_stack
from codespec.grammar.errors import GrammarError
from codespec.grammar.json_order import any_order, several_names
from codespec.grammar.json_refs import Schema, escape
from codespec.grammar.json_schema import COUNTS, HANDLERS, parse, rewrite

_ORDERED = "some properties must stand in the schema's order"
_NOTHING = "Unsatisfiable schema"
_BLAME_SECONDS = 0.7  # to find the keyword behind an error of the engine
# Between the tokens of a JSON text: any layout that a printer makes, but no endless run for a weak model to fall into.
JSON_SPACE = r"( |\r?\n[ \t]{0,60})?"
_NAMING = ("properties", "patternProperties", "required", "dependentRequired", "propertyNames")


def compile_schema(text: str, name: str, lenient: bool = False, single: bool = False) -> tuple[str, list[str]]:
    """A Lark grammar for llguidance whose ``start`` is what the schema in ``text`` allows, and warnings.

    With ``single`` it is one ``%json``, and properties come in the schema's order.

    Raises:
        GrammarError: not JSON, not a schema, or a keyword that cannot be enforced.
    """
    schema = parse(text, name)
    warnings: list[str] = []
    while True:
        source, found = _source(schema, name, lenient)
        free, kept = ("", []) if single else _any_order(source, schema)
        if free and _refusal(free) is None:
            return free, [*warnings, *found, *kept]
        cause = _refusal(source)
        if cause is None:
            return source, warnings + found + ([_ORDERED] if free and several_names(schema) else kept)
        where = _blame(schema, name, lenient, cause)
        if cause.startswith(_NOTHING):
            place = f"{where}: " if where else ""
            reason = cause.removeprefix(_NOTHING).removeprefix(": ")
            raise GrammarError(name, f"{place}no value satisfies the schema ({reason})", "leave room for at least one")
        if where is None or not lenient:
            remedy = "write it in other keywords, or ignore it with --lenient" if where else ""
            raise GrammarError(name, f"{where}: {cause}" if where else cause, remedy)
        warnings.append(f"{where}: {cause}; ignored")
        schema = _without(schema, where)


def _source(schema: Schema, name: str, lenient: bool) -> tuple[str, list[str]]:
    rewritten, warnings = rewrite(schema, name, lenient)
    if rewritten is False:
        raise GrammarError(name, "no value satisfies the schema", "leave room for at least one")
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
    body = {**({} if rewritten is True else rewritten), "x-guidance": options}
    return f"start: %json {json.dumps(body)}", warnings


def _any_order(source: str, schema: Schema) -> tuple[str, list[str]]:
    """The grammar with properties in any order, empty if there is none, and warnings."""
    body = json.loads(source.removeprefix("start: %json "))
    options = body.pop("x-guidance")
    own_options = isinstance(schema, dict) and "x-guidance" in schema
    found = None if own_options else any_order(body, options)
    if found is None:
        return "", [_ORDERED] if several_names(body) else []
    return found[0], [_ORDERED] if found[1] else []


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
    for where in sorted(_keywords(schema, ""), key=lambda pointer: -pointer.count("/")):
        if time.monotonic() > deadline:
            return None
        try:
            source, _ = _source(_without(schema, where), name, lenient)
        except GrammarError:
            continue
        if _refusal(source) != cause:
            return where
    return None


def _keywords(node: Any, where: str) -> Iterator[str]:
    """Pointers to everything in a schema that may be a keyword."""
    if isinstance(node, dict):
        for key, item in node.items():
            if key in HANDLERS or key in COUNTS:
                yield f"{where}/{escape(key)}"
            yield from _keywords(item, f"{where}/{escape(key)}")
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _keywords(item, f"{where}/{index}")


def _without(schema: Any, where: str) -> Schema:
    """A copy of ``schema`` without the keyword at the pointer ``where``."""
    copied = json.loads(json.dumps(schema))
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in where.split("/")[1:]]
    node = copied
    for part in path:
        node = node[int(part)] if isinstance(node, list) else node[part]
    del node[last]
    return copied  # type: ignore[no-any-return]
