"""tree-sitter: which names of a document stand for the same thing; a file for each language."""
