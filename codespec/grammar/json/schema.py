"""JSON Schema (drafts 4, 6, 7, 2019-09 and 2020-12) to a schema that llguidance compiles and enforces.

llguidance refuses many keywords, and takes some without enforcing them. Here every schema is rewritten first:
references are resolved and annotations dropped. ``not``, ``if``, ``oneOf``, ``dependentRequired`` and others become
keywords that llguidance enforces (``json_logic``). A keyword without such an equivalent is an error, which names it by
its JSON pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codespec.grammar.errors import GrammarError, did_you_mean
from codespec.grammar.json import logic
from codespec.grammar.json.drafts import KNOWN, names_dialect
from codespec.grammar.json.exclusive import exclusive, negate
from codespec.grammar.json.members import MemberKeywords
from codespec.grammar.json.positions import names_must_differ
from codespec.grammar.json.refs import BadReference, References, Schema, SeveralMeanings, escape

MAX_SCHEMAS, MAX_DEPTH = 20_000, 200
"""Subschemas after references are resolved; schemas within schemas."""

_ANNOTATIONS = frozenset([
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs",
    "definitions", "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly",
    "contentSchema",
    "additionalItems", "then", "else", "minContains", "maxContains",  # read where items, if and contains are
])  # fmt: skip
_LAST = frozenset(["not", "if", "oneOf"])
"""Keywords for which it matters what else holds."""
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def rewrite(schema: Schema, name: str, lenient: bool = False, unique: bool = False) -> tuple[Schema, list[str]]:
    """An equivalent schema in the keywords that llguidance enforces, and warnings.

    With ``lenient``, keywords that cannot be enforced are left out and the warnings list them. With ``unique``,
    ``uniqueItems`` stays in the schema, for ``json_unique``.

    Raises:
        GrammarError: a keyword cannot be enforced, or its value is wrong; the message begins with its JSON pointer.
    """
    try:
        rewriter = _Rewriter(schema, name, lenient, unique)
        try:
            return rewriter.run()
        except _Unknown:
            # An alternative refers to what it is a part of. Once more, with what that is but for its alternatives.
            rewriter = _Rewriter(schema, name, True, unique)
            rewriter.run()
            return _Rewriter(schema, name, lenient, unique, rewriter.definitions).run()
    except RecursionError:
        raise GrammarError(name, "the schema is nested too deeply", f"at most {MAX_DEPTH} levels are allowed") from None


class _Unknown(Exception):
    """Alternatives cannot be told apart as long as a definition is being rewritten."""


class _Rewriter(MemberKeywords):
    """Rewrites one document. ``out`` is the schema being built, ``also`` what must hold besides.

    Args:
        known: definitions of an earlier attempt, which take all that they should, or more.
    """

    def __init__(
        self, root: Schema, name: str, lenient: bool, unique: bool, known: dict[str, Schema | None] | None = None
    ) -> None:
        super().__init__(name, lenient, unique, References(root))
        self.root, self.known = root, known
        self.names: dict[str, str] = {}  # by pointer
        words = {word for node, _ in self.references.schemas() for word in node}
        self.sees_unevaluated = not words.isdisjoint(("unevaluatedItems", "unevaluatedProperties"))
        self.count = self.depth = 0
        self.given: Schema = True  # what holds besides, of the schema being rewritten

    def run(self) -> tuple[Schema, list[str]]:
        schema = self.schema(self.root, "")
        for pointer, name in self.names.items():
            if logic.is_circle(name, self.definitions):
                raise self.error(pointer, "the reference leads to itself", "point it at a schema")
        if isinstance(schema, bool):
            return schema, self.warnings
        return {**schema, "$defs": self.definitions} if self.definitions else schema, self.warnings

    def schema(self, node: Any, where: str, given: Schema = True) -> Schema:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise self.error(where, "a schema is an object, true or false", "")
        self.count += 1
        self.depth += 1
        if self.count > MAX_SCHEMAS or self.depth > MAX_DEPTH:
            remedy = f"at most {MAX_SCHEMAS} subschemas in {MAX_DEPTH} levels are allowed"
            raise self.error(where, "the schema is too large", remedy)
        out: dict[str, Any] = {}
        also: list[Schema] = []
        outer, self.given, self.place = (self.given, self.place), given, self.references.place(node)
        if self.place.problem:
            raise self.error(f"{where}/$schema", self.place.problem, "write the schema for one of drafts 4 to 2020-12")
        known = self._known(node, where)
        for keyword in sorted(known, key=_turn):
            self._keyword(keyword, node[keyword], known, f"{where}/{escape(keyword)}", out, also)
        self.given, self.place = outer
        self.depth -= 1
        self._check_counts(out, where)
        if also:
            out["allOf"] = [*out.get("allOf", ()), *also]
        return out or True

    def _known(self, node: dict[str, Any], where: str) -> dict[str, Any]:
        """The keywords that the schema's draft knows, and those that none does."""
        draft = self.place.draft
        if names_dialect(node):
            self.warnings.append(f"{where}/$schema: an unknown dialect, read as {draft.name}")
        if draft.ref_alone and "$ref" in node:
            for keyword in node.keys() & KNOWN - {"$ref", *_ANNOTATIONS}:
                self.warnings.append(f"{where}/{keyword}: ignored beside $ref, as {draft.name} says")
            return {"$ref": node["$ref"]}
        known = {}
        for keyword, value in node.items():
            if keyword in draft.keywords or keyword not in KNOWN:
                known[keyword] = value
            elif keyword not in _ANNOTATIONS:
                self.warnings.append(f"{where}/{escape(keyword)}: ignored, as {draft.name} has no such keyword")
        return known

    def _keyword(
        self, keyword: str, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]
    ) -> None:
        if keyword in _ANNOTATIONS or (keyword == "x-guidance" and where == "/x-guidance"):
            return
        handler = HANDLERS.get(keyword)
        if handler is not None:
            handler(self, value, node, where, out, also)
        elif keyword in COUNTS:
            out[keyword] = self.count_value(value, where)
        elif not keyword.startswith(("x-", "$")):
            hint = did_you_mean(keyword, [*HANDLERS, *COUNTS])
            if hint:
                self.warnings.append(f"{where}: unknown keyword, ignored; {hint}")

    def _check_counts(self, out: dict[str, Any], where: str) -> None:
        """llguidance counts properties only where each must be there, or of a closed object up to one."""
        names, required = out.get("properties", {}).keys(), set(out.get("required", ()))
        if out.get("maxProperties") == 0:
            del out["maxProperties"]
            out.update(properties={}, patternProperties={}, additionalProperties=False)
        closed = out.get("additionalProperties") is False and not out.get("patternProperties")
        if out.get("minProperties", 0) <= len(required):
            out.pop("minProperties", None)
        if names_must_differ(out) and not self.keeps_unique:
            self.unsupported(f"{where}/minProperties", "names that must differ cannot be enforced here", "list them")
            del out["minProperties"]
        if closed and out.get("maxProperties", 0) >= len(names):
            out.pop("maxProperties", None)
        for keyword in ("minProperties", "maxProperties"):
            if not names <= required and out.get(keyword, 0) > int(closed or keyword == "minProperties"):
                remedy = "require all of properties, or allow no others and ask for at least or at most 1"
                self.unsupported(f"{where}/{keyword}", "cannot be enforced beside optional properties", remedy)
                del out[keyword]

    def _beside(self, out: dict[str, Any], *also: Schema) -> Schema:
        """What holds of the schema being rewritten, as far as it is."""
        return logic.both(self.given, dict(out), *also)

    # Keywords: (self, value, node, where, out, also)

    def reference(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        if not isinstance(value, str):
            raise self.error(where, "must be a reference", "")
        keyword, find = where.rpartition("/")[2], self.references
        try:
            if keyword == "$ref":
                target, pointer = find.resolve(self.place, value)
            else:
                target, pointer = find.resolve_dynamic(self.place, value, keyword == "$recursiveRef")
        except SeveralMeanings as error:
            self.unsupported(where, str(error), "write $ref")
            return
        except BadReference as error:
            remedy = "copy that schema into $defs" if "outside" in str(error) else "define it"
            raise self.error(where, str(error), remedy) from None
        name = self.names.get(pointer)
        if name is None:
            name = self.names[pointer] = f"d{len(self.names)}"
            self.definitions[name] = None
            self.definitions[name] = self.schema(target, pointer)
        found = {"$ref": f"#/$defs/{name}"}
        out.update(found) if "$ref" not in out else also.append(found)

    def all_of(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        parts: dict[int, Schema] = {}
        for index, item in sorted(enumerate(self.items_of(value, where)), key=lambda each: _looks_around(each[1])):
            parts[index] = self.schema(item, f"{where}/{index}", self._beside(out, *parts.values()))
        out["allOf"] = [part for _, part in sorted(parts.items())]

    def any_of(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        out["anyOf"] = self.schemas(value, where)

    def one_of(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        options = self.schemas(value, where)
        whole = {name: each for name, each in self.definitions.items() if each is not None}
        definitions = {**self.definitions, **(self.known or {}), **whole}
        found = exclusive(options, definitions, self._beside(out, *also))
        if found is None:
            if self.known is None and not self.lenient and len(whole) < len(self.definitions):
                raise _Unknown
            cause = "oneOf whose alternatives may hold together cannot be enforced"
            self.unsupported(where, cause, "use anyOf, or give each a required property with its own const")
        also.append({"anyOf": options if found is None else found})

    def not_(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        negated = negate(self.schema(value, where), self.definitions, self._beside(out, *also))
        if negated is None:
            self.unsupported(where, "this schema has no opposite that can be enforced", "say what is allowed instead")
        else:
            also.append(negated)

    def if_(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]) -> None:
        parent = where.rpartition("/")[0]
        then, otherwise = (self.schema(node.get(key, True), f"{parent}/{key}") for key in ("then", "else"))
        if then is True and otherwise is True and not self.sees_unevaluated:
            return
        condition = self.schema(value, where)
        negated = negate(condition, self.definitions, self._beside(out, *also))
        if negated is None and then is True and otherwise is True:
            also.append({logic.EVALUATES: "unknown"})
        elif negated is None:
            remedy = "write anyOf with both cases"
            self.unsupported(where, "a condition without an opposite that can be enforced", remedy)
        else:
            also.append({"anyOf": [logic.both(condition, then), logic.both(negated, otherwise)]})


def _turn(keyword: str) -> int:
    """When a keyword is rewritten. In ``allOf`` it may matter what else holds, too, and that must be whole by then:
    ``additionalProperties`` without the ``properties`` beside it says something else."""
    return 2 if keyword in _LAST else int(keyword == "allOf")


def _looks_around(node: Any) -> bool:
    return isinstance(node, dict) and not _LAST.isdisjoint(node)


Handler = Callable[[_Rewriter, Any, dict[str, Any], str, dict[str, Any], list[Schema]], None]
_R = _Rewriter
HANDLERS: dict[str, Handler] = {
    "type": _R.type_, "const": _R.values, "enum": _R.values, "minimum": _R.bound, "maximum": _R.bound,
    "exclusiveMinimum": _R.bound, "exclusiveMaximum": _R.bound, "multipleOf": _R.multiple_of, "pattern": _R.pattern,
    "format": _R.format, "$ref": _R.reference, "$dynamicRef": _R.reference, "$recursiveRef": _R.reference,
    "contentEncoding": _R.content, "contentMediaType": _R.content,
    "allOf": _R.all_of, "anyOf": _R.any_of, "oneOf": _R.one_of,
    "not": _R.not_, "if": _R.if_, "items": _R.items, "prefixItems": _R.prefix_items, "properties": _R.properties,
    "additionalProperties": _R.additional, "patternProperties": _R.pattern_properties, "required": _R.required,
    "propertyNames": _R.property_names, "dependentRequired": _R.dependent, "dependentSchemas": _R.dependent,
    "dependencies": _R.dependent, "contains": _R.contains, "uniqueItems": _R.unique,
    "unevaluatedProperties": _R.unevaluated, "unevaluatedItems": _R.unevaluated,
}  # fmt: skip
