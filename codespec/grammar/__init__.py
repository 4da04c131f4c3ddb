"""Grammars: front ends, lowering to llguidance, and the states that generation walks through."""

from codespec.grammar.errors import GrammarError
from codespec.grammar.grammar import Grammar
from codespec.grammar.library import shipped
from codespec.grammar.state import LlguidanceState
from codespec.grammar.tokenizer import Tokenizer, byte_tokenizer

__all__ = ["Grammar", "GrammarError", "LlguidanceState", "Tokenizer", "byte_tokenizer", "shipped"]
