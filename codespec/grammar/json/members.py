"""Keywords of JSON Schemas that speak of the members of objects and arrays."""

from __future__ import annotations

from typing import Any

from codespec.grammar.json import logic
from codespec.grammar.json.drafts import Holds
from codespec.grammar.json.positions import UNIQUE
from codespec.grammar.json.refs import References, Schema, escape
from codespec.grammar.json.values import ValueKeywords


class MemberKeywords(ValueKeywords):
    """Rewrites keywords, see ``ValueKeywords``.

    Attributes:
        definitions: rewritten schemas that references lead to; None: being rewritten.
        keeps_unique: whether ``uniqueItems`` stays.
        sees_unevaluated: whether some schema asks which members others looked at.
    """

    def __init__(self, name: str, lenient: bool, keeps_unique: bool, references: References) -> None:
        super().__init__(name, lenient)
        self.keeps_unique, self.references = keeps_unique, references
        self.sees_unevaluated = False
        self.definitions: dict[str, Schema | None] = {}

    def schema(self, node: Any, where: str, given: Schema = True) -> Schema:
        """The schema ``node`` that stands at the JSON pointer ``where``, rewritten."""
        raise NotImplementedError

    def schemas(self, value: Any, where: str) -> list[Schema]:
        """The list of schemas at the JSON pointer ``where``, each rewritten."""
        return [self.schema(item, f"{where}/{index}") for index, item in enumerate(self.items_of(value, where))]

    def items_of(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.error(where, "must be a list of schemas", "")
        return value

    def items(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: Any) -> None:
        if isinstance(value, list):  # drafts up to 2019-09
            if self.place.draft.keywords["items"] is Holds.SCHEMA:
                raise self.error(where, "is a list only up to draft 2019-09", "write prefixItems")
            out["prefixItems"] = self.schemas(value, where)
            if "additionalItems" in node:
                out["items"] = self.schema(node["additionalItems"], f"{where.rpartition('/')[0]}/additionalItems")
        else:
            out["items"] = self.schema(value, where)

    def prefix_items(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        out["prefixItems"] = self.schemas(value, where)

    def additional(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        out["additionalProperties"] = self.schema(value, where)

    def properties(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        members = self.members(value, where)
        out["properties"] = {key: self.schema(item, f"{where}/{escape(key)}") for key, item in members.items()}

    def pattern_properties(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        patterns: dict[str, Schema] = {}
        for key, item in self.members(value, where).items():
            for pattern in self._patterns(key, f"{where}/{escape(key)}", one=True):
                found = self.schema(item, f"{where}/{escape(key)}")
                patterns[pattern] = logic.both(patterns.get(pattern, True), found)
        out["patternProperties"] = patterns

    def required(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        if isinstance(value, bool):
            raise self.error(where, "must be a list of names", "list it in the object that holds the property")
        out["required"] = self.names_in(value, where)

    def property_names(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        rule = logic.names_rule(self.schema(value, where), self.definitions)
        if rule is None:
            self.unsupported(where, "this rule for names cannot be enforced", "use one pattern, enum or const")
        else:
            also.append(logic.evaluates_nothing(rule))

    def dependent(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        # Since draft 2019-09 "dependencies" is no keyword any more, but validators may read it.
        optional = where.endswith("/dependencies") and not self.place.draft.ref_alone
        mark = {logic.OPTIONAL: "dependencies"} if optional else {}
        for key, needs in self.members(value, where).items():
            place = f"{where}/{escape(key)}"
            present: dict[str, Any] = {"required": [key]}
            if isinstance(needs, list):
                then: Schema = {"required": [key, *self.names_in(needs, place)]}
            else:
                then = logic.both(present, self.schema(needs, place))
            also.append({"anyOf": [{"properties": {key: False}}, then], **mark})

    def contains(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]) -> None:
        parent = where.rpartition("/")[0]
        least = self.count_value(node.get("minContains", 1), f"{parent}/minContains")
        looks = "prefixItems" in self.place.draft.keywords  # at the items, so that unevaluatedItems does not
        if least == 0 and "maxContains" not in node:
            also += [{logic.EVALUATES: "unknown"}] if looks and self.sees_unevaluated else []
            return
        limit = node.get("maxItems")
        if least == 1 and "maxContains" not in node and isinstance(limit, int) and limit <= 16:
            found = logic.holds_one(self.schema(value, where), limit)
            also.append(found if looks else logic.evaluates_nothing(found))
        else:
            self.unsupported(
                where, "contains cannot be enforced", "put the items in prefixItems, or give maxItems up to 16"
            )

    def unique(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: Any) -> None:
        limit = node.get("maxItems")
        if value is not True or (isinstance(limit, int) and limit <= 1):
            return
        if self.keeps_unique:
            out[UNIQUE] = True
        else:
            self.unsupported(where, "uniqueItems cannot be enforced here", "leave it out")

    def unevaluated(
        self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]
    ) -> None:
        rest = self.schema(value, where)
        keyword = where.rpartition("/")[2]
        if rest is True:  # takes everything, and counts as having looked at it
            out.setdefault("additionalProperties" if keyword == "unevaluatedProperties" else "items", True)
            return
        bare = {key: item for key, item in node.items() if key != keyword}
        self.references.move(bare, self.place)
        base = self.schema(bare, where.rpartition("/")[0]) if bare else True
        closed = logic.close(base, rest, keyword == "unevaluatedProperties", self.definitions)
        if closed is None:
            remedy = "list everything in one place and use additionalProperties or items"
            self.unsupported(where, f"{keyword} cannot be enforced here", remedy)
        else:
            also.append(closed)
