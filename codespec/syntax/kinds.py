"""Kinds of nodes in the grammars of tree-sitter."""

import re

LISTS = frozenset(
    {
        "module", "program", "source_file", "translation_unit", "document", "stream",
        "block", "statement_block", "compound_statement", "statement_list", "declaration_list",
        "class_body", "object_type", "interface_body", "field_declaration_list", "switch_body",
        "block_node", "block_mapping", "block_sequence",
    }
)  # fmt: skip
"""Nodes that hold statements or declarations, in the grammars of tree-sitter."""

DEFINITIONS = frozenset(
    {
        "module", "program", "source_file", "translation_unit",
        "class_body", "object_type", "interface_body", "field_declaration_list", "declaration_list",
    }
)  # fmt: skip
"""Those of ``LISTS`` that hold definitions rather than statements."""

ITEMS = LISTS | {
    "dictionary", "list", "set", "tuple", "argument_list", "parameters", "object", "array", "arguments",
    "formal_parameters", "named_imports", "export_clause", "object_pattern", "literal_value", "parameter_list",
    "import_spec_list", "initializer_list", "enumerator_list", "enum_body", "field_initializer_list",
    "enum_variant_list", "use_list", "match_block", "array_initializer", "element_value_array_initializer",
}  # fmt: skip
"""Nodes that hold statements, declarations, or values side by side."""

STRING = re.compile(r"string$|string_literal$|char_literal$|rune_literal$|^template_string$")
"""Nodes that are texts, whatever stands in them."""

IN_STRINGS = frozenset({"interpolation", "template_substitution", "format_expression"})
"""Code in the middle of a string."""
