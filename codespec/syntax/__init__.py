"""What tree-sitter says of documents: errors, the syntax around a position, imports and definitions.

Only this package imports it. A language whose parser is not installed has no syntax, and still completes.
"""
