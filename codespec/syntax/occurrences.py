"""tree-sitter: where the names of a file stand, and what they are there; calls, functions and their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from codespec.languages import Language
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.tree import syntax_parser

if TYPE_CHECKING:
    import tree_sitter

Kind = Literal["name", "attribute", "type", "shorthand", "keyword", "string", "number"]

NAMES: dict[str, Kind] = {
    "identifier": "name",
    "property_identifier": "attribute",
    "field_identifier": "attribute",
    "private_property_identifier": "attribute",
    "type_identifier": "type",
    "shorthand_property_identifier": "shorthand",
    "shorthand_property_identifier_pattern": "shorthand",
    "string": "string",
    "interpreted_string_literal": "string",
    "string_literal": "string",
    "integer": "number",
    "number": "number",
    "int_literal": "number",
    "float": "number",
    "float_literal": "number",
}
FUNCTIONS = frozenset(
    {
        "function_definition", "function_declaration", "generator_function_declaration", "method_declaration",
        "method_definition", "arrow_function", "function_expression", "func_literal", "function_item", "lambda",
    }
)  # fmt: skip
_LONGEST_CALLEE = 400
_PARAMETERS = frozenset({"parameters", "formal_parameters", "parameter_list", "lambda_parameters"})
_ARGUMENTS = frozenset({"argument_list", "arguments"})
_BINDING_PARENTS = frozenset(
    {
        "parameters", "typed_parameter", "default_parameter", "typed_default_parameter", "formal_parameters",
        "required_parameter", "optional_parameter", "parameter_declaration", "parameter", "lambda_parameters",
        "list_splat_pattern", "dictionary_splat_pattern", "pattern_list", "tuple_pattern", "init_declarator",
    }
)  # fmt: skip
_BINDING_FIELDS = frozenset(
    {
        ("assignment", "left"), ("named_expression", "name"), ("for_statement", "left"), ("for_in_clause", "left"),
        ("variable_declarator", "name"), ("for_in_statement", "left"), ("short_var_declaration", "left"),
        ("range_clause", "left"), ("var_spec", "name"), ("let_declaration", "pattern"), ("as_pattern_target", ""),
    }
)  # fmt: skip


class Occurrence(NamedTuple):
    """A name or literal in a file.

    Attributes:
        start, end: in bytes.
        function: index of the innermost function around it, -1 at the top level.
        bound: whether it gets its value there: a parameter, the left side of an assignment.
    """

    start: int
    end: int
    text: str
    kind: Kind
    function: int
    bound: bool


class Function(NamedTuple):
    """A function; ``parent`` is the index of the one around it, or -1."""

    start: int
    end: int
    name: str
    parameters: tuple[tuple[int, int], ...]
    closing: int
    parent: int


class Call(NamedTuple):
    """A call; ``callee`` as written (of a long one the end), ``closing`` where the bracket behind the arguments
    stands."""

    start: int
    end: int
    callee: str
    arguments: tuple[tuple[int, int], ...]
    closing: int
    function: int


@dataclass
class Occurrences:
    """What stands where in a file, in order."""

    names: list[Occurrence] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def within(self, function: int, outer: int) -> bool:
        """Whether a function is another one or inside it."""
        while function > outer:
            function = self.functions[function].parent
        return function == outer


def occurrences(language: Language, data: bytes) -> Occurrences | None:
    """The occurrences in a file; None without a parser, or where the parser finds errors in it or takes too long."""
    parser = syntax_parser(language)
    try:
        root = parser.parse(data).root_node if parser is not None else None
    except TooMuchToParse:
        return None
    if root is None or root.has_error:
        return None
    found = Occurrences()
    for node, parent, above, role, function in _walk(root, found, data):
        kind = NAMES.get(node.type)
        if kind is None:
            continue
        if kind == "name":
            kind = kind_of(parent.type, role)
        bound = parent.type in _BINDING_PARENTS or (parent.type, role) in _BINDING_FIELDS
        if parent.type == "expression_list" and above is not None:
            bound = above.child_by_field_name("left") == parent and above.type in (
                "short_var_declaration", "range_clause", "assignment",
            )  # fmt: skip
        start, end = node.start_byte, node.end_byte
        found.names.append(Occurrence(start, end, data[start:end].decode(), kind, function, bound))
    return found


def kind_of(parent: str, role: str) -> Kind:
    """What an identifier is, by the kind of node that it is in, and its field there."""
    if parent == "attribute" and role == "attribute":
        return "attribute"
    if parent in ("keyword_argument", "keyed_element", "literal_element") and role in ("name", "key", ""):
        return "keyword"
    return "name"


def _walk(
    root: tree_sitter.Node, found: Occurrences, data: bytes
) -> Iterator[tuple[tree_sitter.Node, tree_sitter.Node, tree_sitter.Node | None, str, int]]:
    """Every node but the root, with its parent and what that is in, its field there, and the function that it is in."""
    stack: list[tuple[tree_sitter.Node, tree_sitter.Node | None, int]] = [(root, None, -1)]
    while stack:
        node, parent, function = stack.pop()
        if node.type in FUNCTIONS:
            found.functions.append(_function(node, data, function))
            function = len(found.functions) - 1
        below = []
        for index, child in enumerate(node.children):
            if not child.is_named:
                continue
            if child.type in NAMES:
                yield child, node, parent, node.field_name_for_child(index) or "", function
            if child.type in _ARGUMENTS and node.type in ("call", "call_expression"):
                begins = max(node.start_byte, child.start_byte - _LONGEST_CALLEE)
                callee = data[begins : child.start_byte].decode("utf-8", "ignore")
                spans = tuple(_spans(child.named_children))
                found.calls.append(Call(node.start_byte, node.end_byte, callee, spans, child.end_byte - 1, function))
            if child.child_count:
                below.append((child, node, function))
        stack += reversed(below)


def _function(node: tree_sitter.Node, data: bytes, parent: int) -> Function:
    name = node.child_by_field_name("name")
    list_ = node.child_by_field_name("parameters")
    known = list_ is not None and list_.type in _PARAMETERS
    spans = tuple(_spans(list_.named_children)) if known and list_ is not None else ()
    closing = list_.end_byte - 1 if known and list_ is not None else -1
    text = data[name.start_byte : name.end_byte].decode() if name is not None else ""
    return Function(node.start_byte, node.end_byte, text, spans, closing, parent)


def _spans(nodes: Sequence[tree_sitter.Node]) -> Iterator[tuple[int, int]]:
    for node in nodes:
        if node.type != "comment":
            yield node.start_byte, node.end_byte
