"""tree-sitter: which uses of a name stand for the same thing. Python, JavaScript, TypeScript and Go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from codespec.languages import Language
from codespec.syntax.tree import new_parser

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
        binders: by type of node, the fields whose names it binds; an empty field is every child.
        patterns: types of nodes between a binder and the names.
        hoisted: types of binders that bind in the function, not the block.
        never: by type of node, the fields whose names are of something else: attributes, keys, keywords.
        unsure: types of nodes whose names cannot be exchanged alone.
    """

    scopes: frozenset[str]
    functions: frozenset[str]
    binders: dict[str, tuple[str, ...]]
    patterns: frozenset[str]
    hoisted: frozenset[str] = frozenset()
    never: frozenset[tuple[str, str]] = frozenset()
    unsure: frozenset[str] = frozenset()


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
    never=frozenset({("attribute", "attribute"), ("keyword_argument", "name")}),
    unsure=frozenset({"global_statement", "nonlocal_statement", "aliased_import", "dotted_name", "keyword_pattern"}),
)  # fmt: skip
_FUNCTIONS = frozenset(
    {
        "function_declaration", "generator_function_declaration", "function_expression", "arrow_function",
        "method_definition", "generator_function",
    }
)  # fmt: skip
_JAVASCRIPT = _Rules(
    scopes=_FUNCTIONS | {"program", "statement_block", "for_statement", "for_in_statement", "catch_clause",
                         "switch_body", "class_body"},
    functions=frozenset({"function_declaration", "generator_function_declaration", "class_declaration"}),
    binders={
        "formal_parameters": ("",), "arrow_function": ("parameter",), "required_parameter": ("pattern",),
        "optional_parameter": ("pattern",), "variable_declarator": ("name",), "catch_clause": ("parameter",),
        "function_declaration": ("name",), "generator_function_declaration": ("name",), "class_declaration": ("name",),
        "for_in_statement": ("left",),
    },
    patterns=frozenset({"object_pattern", "array_pattern", "rest_pattern", "assignment_pattern", "pair_pattern"}),
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


class Scopes:
    """Reads documents. For one thread."""

    def __init__(self) -> None:
        self._parsers: dict[str, tree_sitter.Parser | None] = {}

    def still_called(self, language: Language, text: str, places: list[int], old: str, new: str) -> Uses | None:
        """Where ``old`` still stands for what is called ``new`` at ``places``, in characters.

        None where that is in doubt: the language is not known, a use is an import, ``new`` stands for something else
        there, or what ``old`` stands for is not defined in the document.
        """
        rules = _RULES.get(language.id)
        if rules is None or len(text) > LARGEST or not places:
            return None
        if language.parser not in self._parsers:
            self._parsers[language.parser] = new_parser(language.parser)
        parser = self._parsers[language.parser]
        if parser is None:
            return None
        data = text.encode("utf-8", "replace")
        reader = _Reader(rules, parser.parse(data).root_node, data)
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
        binding = {scope.id: scope for each in changed + uses if (scope := self._bound_in(each)) is not None}
        targets = {self._resolved(each, binding) for each in changed}
        target = binding.get(next(iter(targets)) or 0) if len(targets) == 1 else None
        if target is None:
            return None
        # Where only a use was changed, a name that is known may be meant.
        bound = any(self._bound_in(each) is not None for each in changed)
        if any(not bound or self._inside(each, target) for each in others):
            return None
        same = [each for each in uses if self._resolved(each, binding) == target.id]
        if any(self._is_unsure(each) for each in same):
            return None
        return same, [each for each in leaves if each not in same]

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
        for kind, field in self._rules.never:
            if parent.type != kind:
                continue
            held = parent.child_by_field_name(field) if field else parent.named_children[0]
            if held == leaf:
                return False
        return True

    def _is_unsure(self, leaf: tree_sitter.Node) -> bool:
        """Whether a name cannot be exchanged alone: it is imported, or names a property as well."""
        parent = leaf.parent
        return leaf.type == SHORTHAND_PATTERN or (parent is not None and parent.type in self._rules.unsure)

    def _bound_in(self, leaf: tree_sitter.Node) -> tree_sitter.Node | None:
        """The scope that a name is bound in by standing where it does; None where it is only used."""
        node, parent = leaf, leaf.parent
        while parent is not None and parent.type in self._rules.patterns:
            node, parent = parent, parent.parent
        fields = self._rules.binders.get(parent.type, ()) if parent is not None else ()
        if parent is None or not any(self._holds(parent, field, node) for field in fields):
            return None
        outside = parent.type in self._rules.functions
        return self._scope_of(parent.parent if outside else parent)

    @staticmethod
    def _holds(parent: tree_sitter.Node, field: str, node: tree_sitter.Node) -> bool:
        if field:
            return node in parent.children_by_field_name(field)
        return parent.type != "typed_parameter" or parent.named_children[0] == node

    def _scope_of(self, node: tree_sitter.Node | None) -> tree_sitter.Node | None:
        while node is not None and node.type not in self._rules.scopes:
            inner, node = node, node.parent
            # What a comprehension of Python goes through is outside of it.
            if node is not None and node.type == "for_in_clause" and inner == node.child_by_field_name("right"):
                node = node.parent.parent if node.parent is not None else None
        return node

    def _resolved(self, leaf: tree_sitter.Node, binding: Collection[int]) -> int | None:
        """The innermost scope around a name in which it is bound."""
        own = self._bound_in(leaf)
        node = own if own is not None else self._scope_of(leaf)
        while node is not None and node.id not in binding:
            node = self._scope_of(node.parent)
        return node.id if node is not None else None
