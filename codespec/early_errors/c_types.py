"""C: names of types where a value has to stand.

Which names are types is read off how a file writes them elsewhere.
"""

from __future__ import annotations

import re
from itertools import islice

from codespec.early_errors.walk import Node, Walk, named

_VALUES = frozenset(
    {
        "binary_expression", "assignment_expression", "return_statement", "expression_statement", "argument_list",
        "conditional_expression", "subscript_expression", "unary_expression", "pointer_expression", "field_expression",
        "update_expression", "call_expression", "init_declarator", "cast_expression", "parenthesized_expression",
    }
)  # fmt: skip
"""What holds values."""
_WHOLE = frozenset({"argument_list", "return_statement", "assignment_expression", "init_declarator"})
"""Those in which a value in brackets is no cast."""
_TAKES_TYPES = re.compile(rb"va_arg|offsetof|typeof|container_of|\w*sizeof|\w*alignof|[A-Z_]\w*")
# Behind the beginning of a line, a bracket or a comma: a name of a type, and one of what is declared.
_DECLARES = (
    rb"(?m)(?:^|[(,;{])[ \t]*(?:(?:const|static|extern|inline|volatile|register)[ \t]+)*"
    rb"%b(?:[ \t]+\**|[ \t]*\*+[ \t]*)[A-Za-z_]\w*[ \t]*[;,)=(\[]"
)
_DECLARED = re.compile(
    _DECLARES.replace(rb"(?m)", b"").replace(rb"(?:^|[(,;{])", rb"(?:^|[(,;{])(?=") % rb"([A-Za-z_]\w*)" + b")",
    re.MULTILINE,
)
_BYTES_A_STEP = 64
# How a type is used: before a name or stars, in a cast, or as the name of a header.
_LIKE_A_TYPE = rb"\b%b(?:[ \t]+[A-Za-z_]|[ \t]*\*|\.h\b)|\([ \t]*(?:const[ \t]+)?%b[ \t]*\)"
_ELSE = re.compile(rb"^[ \t]*#[ \t]*(?:el|undef)", re.MULTILINE)
_TREATED_AS_A_VALUE = rb"\b%b\s*(?:->|\.\w|\[|=[^=]|\+\+|--|[-+]=)"
_DEFINES = rb"\}[ \t]*%b[ \t]*;|typedef\b(?:(?!\btypedef\b)[^;{}])*\b%b[ \t]*;"


def is_type_as_a_value(walk: Walk, name: Node) -> bool:
    """Whether a name stands where a value has to, and is one of a type."""
    if not _is_value(walk, name):
        return False
    if walk.touched is None:
        return _may_be_type(walk, name) and _is_type(walk, name)
    return walk.once("type", walk.text(name), lambda: _is_type(walk, name))


def is_value_as_a_type(walk: Walk, cast: Node) -> bool:
    """Whether what a cast has for a type is a name that the rest of the file treats as a value only: `(p) q`."""
    descriptor = cast.child_by_field_name("type")
    kind = descriptor.child_by_field_name("type") if descriptor is not None else None
    if kind is None or kind.type != "type_identifier" or descriptor.child_count != 1:
        return False

    def is_one() -> bool:
        rest, text = _rest(walk, kind), re.escape(walk.text(kind))
        return re.search(_TREATED_AS_A_VALUE % text, rest) is not None and re.search(_DECLARES % text, rest) is None

    # What is put in is no part of the rest, whichever of its names is asked about.
    return is_one() if walk.touched is None else walk.once("value", walk.text(kind), is_one)


def is_listed(walk: Walk, name: Node) -> bool:
    """Whether the rest of the file has a name in a list of values, such as those of an enumeration."""
    return re.search(rb"[,{]\s*%b\s*[,=}]" % re.escape(walk.text(name)), _rest(walk, name)) is not None


def is_used(walk: Walk, name: Node) -> bool:
    """Whether the rest of the file has a name in a line that is no directive: a macro of nothing would remove it."""
    return re.search(rb"^(?![ \t]*#).*\b%b\b" % re.escape(walk.text(name)), _rest(walk, name), re.MULTILINE) is not None


def is_defined(walk: Walk, name: Node) -> bool:
    """Whether the file defines a macro of this name."""
    return re.search(rb"(?m)^[ \t]*#[ \t]*define[ \t]+%b\b" % re.escape(walk.text(name)), walk.data) is not None


def is_defined_as_a_type(walk: Walk, name: Node) -> bool:
    """Whether the file defines a type of this name."""
    text = re.escape(walk.text(name))
    return re.search(_DEFINES % (text, text), walk.data) is not None


def declares_a_pointer(function: Node) -> bool:
    """Whether what is called is ``t (*name)``, which declares a pointer to a function or an array of them."""
    inner, arguments = function.child_by_field_name("function"), function.child_by_field_name("arguments")
    only = list(named(arguments)) if arguments is not None else []
    pointer = len(only) == 1 and only[0].type == "pointer_expression"
    return function.type == "call_expression" and pointer and inner is not None and inner.type == "identifier"


def is_a_number(walk: Walk, name: Node) -> bool:
    """Whether a name is that of a macro that stands for a number or brackets from some line above on."""
    start = 0
    for match in _ELSE.finditer(walk.data, 0, name.start_byte):
        start = match.end()
    defined = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+%b[ \t]+[(\d]" % re.escape(walk.text(name)), re.MULTILINE)
    return defined.search(walk.data, start, name.start_byte) is not None


def _is_value(walk: Walk, name: Node) -> bool:
    around = list(islice(walk.around(name), 2))
    if not around or around[0].type not in _VALUES:
        return False
    parent = around[0]
    # `T (x);` and `T (*x)(int);`, which the parser takes for calls.
    if parent.type == "call_expression" and parent.child_by_field_name("function") == name:
        return False
    # `(T) (x)`, `(T) -1` and `sizeof (T)`, which the parser cannot tell from a value.
    if parent.type == "parenthesized_expression" and len(around) > 1 and around[1].type not in _WHOLE:
        return False
    if parent.type == "init_declarator" and parent.child_by_field_name("value") != name:
        return False
    return not is_for_a_macro(walk, name)


def is_for_a_macro(walk: Walk, name: Node) -> bool:
    """Whether a name is within the arguments of what may be a macro."""

    def takes_types(inner: Node, around: Node) -> bool | None:
        if around.type.endswith(("statement", "declaration")):
            return False
        function = around.child_by_field_name("function") if around.type == "call_expression" else None
        takes = function is not None and function != inner and _TAKES_TYPES.fullmatch(walk.text(function))
        return True if takes else None

    return walk.holds_around("macro", name, takes_types)


def _may_be_type(walk: Walk, name: Node) -> bool:
    """Whether anything in the file looks like a declaration with a name for its type."""

    def look() -> bool:
        for found in _DECLARED.finditer(walk.data):
            walk.once("declares", found[1], lambda: True)
        return True

    return walk.once("declares", b"", look) and walk.once("declares", walk.text(name), lambda: False)


def _is_type(walk: Walk, name: Node) -> bool:
    """Whether the rest of the file declares something of this type, and does nothing else with the name."""
    rest, text = _rest(walk, name), re.escape(walk.text(name))
    uses = len(re.findall(rb"\b%b\b" % text, rest))
    if not uses or not re.search(_DECLARES % text, rest):
        return False
    like = sum(len(re.findall(pattern % (text, text), rest)) for pattern in (_LIKE_A_TYPE, _DEFINES))
    return like >= uses


def _rest(walk: Walk, name: Node) -> bytes:
    """The file without what was put in, or without the name."""
    walk.spend(len(walk.data) // _BYTES_A_STEP)
    begin, end = walk.touched if walk.touched is not None else (name.start_byte, name.end_byte)
    return walk.data[:begin] + b"\n" + walk.data[end:]
