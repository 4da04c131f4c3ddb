"""tree-sitter: which names of a document stand for the same thing; the folder of a language has its reader."""
