"""tree-sitter: which uses of a name stand for the same thing. Python, JavaScript, TypeScript and Go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from codespec.languages import Language
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.tree import syntax_parser

if TYPE_CHECKING:
    import tree_sitter

LARGEST = 400_000
"""Characters of a document that is read."""
SHORTHAND, SHORTHAND_PATTERN = "shorthand_property_identifier", "shorthand_property_identifier_pattern"


class Use(NamedTuple):
    """A name in a document.

    Attributes:
        start: in characters.
        shorthand: whether it names a property of an object, too: ``{name}`` is ``{name: name}``.
    """

    start: int
    shorthand: bool


@dataclass(frozen=True)
class _Rules:
    """What binds names in a language.

    Attributes:
        scopes: types of nodes that names are bound in.
        functions: those of them whose own name is bound outside of them.
        outside: by type of node, a field whose names are looked for outside of the scope that the node is of.
        classes: scopes whose names those within them do not see.
        binders: by type of node, the fields whose names it binds; an empty field is every child.
        patterns: types of nodes between a binder and the names.
        hoisted: types of nodes around binders that bind in the function, not in one of the ``blocks``.
        late: by type of binder, the field that is read before it binds.
        never: by type of node, the fields whose names are of something else: attributes, keys, keywords.
        unsure: types of nodes whose names cannot be exchanged alone.
        elsewhere: those of them whose names are bound in another scope than where they stand.
    """

    scopes: frozenset[str]
    functions: frozenset[str]
    binders: dict[str, tuple[str, ...]]
    patterns: frozenset[str]
    outside: dict[str, tuple[str, ...]] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    hoisted: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    late: frozenset[tuple[str, str]] = frozenset()
    never: frozenset[tuple[str, str]] = frozenset()
    unsure: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()


_PYTHON = _Rules(
    scopes=frozenset(
        {
            "module", "function_definition", "lambda", "class_definition", "list_comprehension",
            "set_comprehension", "dictionary_comprehension", "generator_expression",
        }
    ),
    functions=frozenset({"function_definition", "class_definition"}),
    binders={
        "parameters": ("",), "lambda_parameters": ("",), "default_parameter": ("name",),
        "typed_default_parameter": ("name",), "typed_parameter": ("",), "assignment": ("left",),
        "for_statement": ("left",), "for_in_clause": ("left",), "named_expression": ("name",),
        "as_pattern_target": ("",), "function_definition": ("name",), "class_definition": ("name",),
    },
    patterns=frozenset(
        {"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "dictionary_splat_pattern"}
    ),
    outside={
        "for_in_clause": ("right",), "default_parameter": ("value",), "typed_default_parameter": ("value", "type"),
        "typed_parameter": ("type",), "function_definition": ("return_type",), "class_definition": ("superclasses",),
    },
    classes=frozenset({"class_definition"}),
    never=frozenset({("attribute", "attribute"), ("keyword_argument", "name")}),
    unsure=frozenset({"aliased_import", "dotted_name", "keyword_pattern"}),
    elsewhere=frozenset({"global_statement", "nonlocal_statement"}),
)  # fmt: skip
_FUNCTIONS = frozenset(
    {
        "function_declaration", "generator_function_declaration", "function_expression", "arrow_function",
        "method_definition", "generator_function",
    }
)  # fmt: skip
_BLOCKS = frozenset({"statement_block", "for_statement", "for_in_statement", "catch_clause", "switch_body"})
_JAVASCRIPT = _Rules(
    scopes=_FUNCTIONS | _BLOCKS | {"program", "class_body"},
    functions=frozenset({"function_declaration", "generator_function_declaration", "class_declaration"}),
    binders={
        "formal_parameters": ("",), "arrow_function": ("parameter",), "required_parameter": ("pattern",),
        "optional_parameter": ("pattern",), "variable_declarator": ("name",), "catch_clause": ("parameter",),
        "function_declaration": ("name",), "generator_function_declaration": ("name",), "class_declaration": ("name",),
        "for_in_statement": ("left",),
    },
    patterns=frozenset({"object_pattern", "array_pattern", "rest_pattern", "assignment_pattern", "pair_pattern"}),
    hoisted=frozenset({"variable_declaration"}),
    blocks=_BLOCKS,
    unsure=frozenset({"import_specifier", "export_specifier", "import_clause", "namespace_import"}),
)  # fmt: skip
_GO = _Rules(
    scopes=frozenset(
        {
            "source_file", "function_declaration", "method_declaration", "func_literal", "block", "if_statement",
            "for_statement", "expression_switch_statement", "type_switch_statement", "expression_case", "type_case",
            "default_case", "communication_case",
        }
    ),
    functions=frozenset({"function_declaration"}),
    binders={
        "parameter_declaration": ("name",), "variadic_parameter_declaration": ("name",),
        "short_var_declaration": ("left",), "var_spec": ("name",), "const_spec": ("name",), "range_clause": ("left",),
        "function_declaration": ("name",), "type_switch_statement": ("alias",), "receive_statement": ("left",),
    },
    patterns=frozenset({"expression_list"}),
    late=frozenset({("short_var_declaration", "right"), ("var_spec", "value")}),
    never=frozenset({("keyed_element", "")}),
)  # fmt: skip
_RULES = {
    "python": _PYTHON,
    "go": _GO,
    **dict.fromkeys(("javascript", "javascriptreact", "typescript", "typescriptreact"), _JAVASCRIPT),
}


@dataclass(frozen=True)
class Uses:
    """The places of a name, ascending.

    Attributes:
        same: that stand for the thing in question.
        other: where something else has that name, such as an attribute; in characters.
    """

    same: tuple[Use, ...]
    other: tuple[int, ...]


def still_called(language: Language, text: str, places: list[int], old: str, new: str) -> Uses | None:
    """Where ``old`` still stands for what is called ``new`` at ``places``, in characters. One thread at a time.

    None where that is in doubt: the language is not known, a use is an import, ``new`` stands for something else there,
    or what ``old`` stands for is not defined in the document.
    """
    rules, parser = _RULES.get(language.id), syntax_parser(language)
    if rules is None or parser is None or len(text) > LARGEST or not places:
        return None
    data = text.encode("utf-8", "replace")
    try:
        reader = _Reader(rules, parser.parse(data).root_node, data)
    except TooMuchToParse:
        return None
    at = [len(text[:place].encode("utf-8", "replace")) for place in places]
    found = reader.still_called(at, old.encode(), new.encode())
    if found is None:
        return None
    same, other = found
    return Uses(
        tuple(Use(_characters(data, node), node.type == SHORTHAND) for node in same),
        tuple(_characters(data, node) for node in other),
    )


def _characters(data: bytes, node: tree_sitter.Node) -> int:
    return len(data[: node.start_byte].decode("utf-8", "replace"))


_Bindings: TypeAlias = dict[int, set[tuple[int, int]]]
"""By the id of a scope that binds a name, where it does so too late: start and end in bytes, empty for nowhere."""


class _Reader:
    """The names of one tree."""

    def __init__(self, rules: _Rules, root: tree_sitter.Node, data: bytes) -> None:
        self._rules, self._root, self._data = rules, root, data

    def still_called(
        self, places: list[int], old: bytes, new: bytes
    ) -> tuple[list[tree_sitter.Node], list[tree_sitter.Node]] | None:
        """The uses of the same thing, and those of others."""
        renamed = [each for each in self._leaves(new) if self._is_variable(each)]
        changed = [each for each in renamed if each.start_byte in places]
        others = [each for each in renamed if each.start_byte not in places]
        leaves = list(self._leaves(old))
        uses = [each for each in leaves if self._is_variable(each)]
        bindings: _Bindings = {}
        for each in changed + uses:
            scope = self._bound_in(each)
            if scope is not None:
                bindings.setdefault(scope.id, set()).add(self._late(each))
        targets = {self._resolved(each, bindings) for each in changed}
        target = next(iter(targets)) if len(targets) == 1 else None
        if target is None or any(self._is_in(each, self._rules.elsewhere) for each in uses):
            return None
        # Where only a use was changed, a name that is known may be meant.
        bound = any(self._bound_in(each) is not None for each in changed)
        if any(not bound or self._inside(each, target) for each in others):
            return None
        same = [each for each in uses if self._resolved(each, bindings) == target]
        # Imported, or the name of a property as well.
        if any(each.type == SHORTHAND_PATTERN or self._is_in(each, self._rules.unsure) for each in same):
            return None
        known = set(same)
        return same, [each for each in leaves if each not in known]

    @staticmethod
    def _inside(node: tree_sitter.Node, scope: tree_sitter.Node) -> bool:
        return scope.start_byte <= node.start_byte < scope.end_byte

    def _leaves(self, name: bytes) -> Iterator[tree_sitter.Node]:
        """The names that are ``name``."""
        at = self._data.find(name)
        while at >= 0:
            leaf = self._root.descendant_for_byte_range(at, at + len(name))
            if leaf is not None and "identifier" in leaf.type and leaf.start_byte == at and leaf.text == name:
                yield leaf
            at = self._data.find(name, at + 1)

    def _is_variable(self, leaf: tree_sitter.Node) -> bool:
        """Whether a name is no attribute, key or keyword."""
        if leaf.type not in ("identifier", SHORTHAND, SHORTHAND_PATTERN):
            return False
        parent = leaf.parent
        if parent is not None and parent.type == "literal_element":  # of Go: the key of a field
            leaf, parent = parent, parent.parent
        if parent is None:
            return False
        for kind, name in self._rules.never:
            if parent.type != kind:
                continue
            held = parent.child_by_field_name(name) if name else parent.named_children[0]
            if held == leaf:
                return False
        return True

    @staticmethod
    def _is_in(leaf: tree_sitter.Node, kinds: frozenset[str]) -> bool:
        return leaf.parent is not None and leaf.parent.type in kinds

    def _bound_in(self, leaf: tree_sitter.Node) -> tree_sitter.Node | None:
        """The scope that a name is bound in by standing where it does; None where it is only used."""
        node, parent = leaf, leaf.parent
        while parent is not None and parent.type in self._rules.patterns:
            node, parent = parent, parent.parent
        fields = self._rules.binders.get(parent.type, ()) if parent is not None else ()
        if parent is None or not any(self._holds(parent, field, node) for field in fields):
            return None
        outside = parent.type in self._rules.functions
        scope = self._scope_of(parent.parent if outside else parent)
        hoisted = parent.parent is not None and parent.parent.type in self._rules.hoisted
        while hoisted and scope is not None and scope.type in self._rules.blocks:
            scope = self._scope_of(scope.parent)
        return scope

    def _late(self, leaf: tree_sitter.Node) -> tuple[int, int]:
        """Start and end of what is read before a name is bound that is bound where it stands."""
        node = leaf.parent
        while node is not None and node.type in self._rules.patterns:
            node = node.parent
        for kind, name in self._rules.late:
            value = node.child_by_field_name(name) if node is not None and node.type == kind else None
            if value is not None:
                return value.start_byte, value.end_byte
        return 0, 0

    @staticmethod
    def _holds(parent: tree_sitter.Node, field: str, node: tree_sitter.Node) -> bool:
        if field:
            return node in parent.children_by_field_name(field)
        return parent.type != "typed_parameter" or parent.named_children[0] == node

    def _scope_of(self, node: tree_sitter.Node | None) -> tree_sitter.Node | None:
        """The innermost scope that a node is in, or is, and looks its names up in."""
        skips = False
        while node is not None and (skips or node.type not in self._rules.scopes):
            skips = skips and node.type not in self._rules.scopes
            inner, node = node, node.parent
            if node is not None:
                fields = self._rules.outside.get(node.type, ())
                skips = skips or any(node.child_by_field_name(name) == inner for name in fields)
        return node

    def _resolved(self, leaf: tree_sitter.Node, bindings: _Bindings) -> tree_sitter.Node | None:
        """The innermost scope around a name in which it is bound."""
        own = self._bound_in(leaf)
        first = node = own if own is not None else self._scope_of(leaf)
        while node is not None:
            binds = any(not start <= leaf.start_byte < end for start, end in bindings.get(node.id, ()))
            if binds and (node == first or node.type not in self._rules.classes):
                break
            node = self._scope_of(node.parent)
        return node
