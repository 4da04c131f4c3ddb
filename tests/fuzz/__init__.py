"""Grammars that nobody would write, to see what they do: ``python -m tests.fuzz --help``."""
