"""``codespec grammar``: its commands, which import what is heavy when they run."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from codespec.cli import show
from codespec.exit_codes import ANSWER_IS_NO, DONE
from codespec.files import MAX_TEXT, STANDARD_INPUT, read_input

if TYPE_CHECKING:
    from codespec.grammar import Grammar
    from codespec.grammar.grammar import GrammarText

MOST_SPLITS = 60


def warned(grammar: Grammar) -> Grammar:
    """The grammar, its warnings shown."""
    for warning in grammar.warnings:
        show.error(warning)
    return grammar


def read_grammar(name: str, notation: str) -> GrammarText:
    """The text of a grammar by its name, in a file, or in standard input, which is in ``notation``.

    Raises:
        CodespecError: there is none, or it cannot be read.
    """
    from codespec.grammar.grammar import GrammarText

    return grammar_in(notation, name) if name == STANDARD_INPUT else GrammarText.find(name)


def grammar_in(notation: str, name: str) -> GrammarText:
    """The text of a grammar in a file of any name, or in standard input.

    Raises:
        CodespecError: it cannot be read.
    """
    from codespec.grammar.grammar import MAX_FILE, GrammarText

    shown, text = read_input(name, MAX_FILE)
    folder = None if name == STANDARD_INPUT else str(Path(name).parent)
    return GrammarText(notation, text, shown, folder=folder)


def run_grammar_check(options: argparse.Namespace) -> int:
    """``codespec grammar check``; exits with 1 if the grammar has problems."""
    from codespec.grammar.check import check

    source = read_grammar(options.file, options.notation)
    problems = check(source, options.lenient, options.strict, options.extensions)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{source.name}: no problems found")
    if options.lexemes:
        _print_lexemes(source, options.extensions)
    return ANSWER_IS_NO if problems else DONE


def _print_lexemes(source: GrammarText, extensions: bool) -> None:
    from codespec.grammar import Grammar
    from codespec.grammar.lower.lower import lexemes

    rules = Grammar.load(source, extensions=extensions).rules
    if rules is None:
        return
    whole, splits, given_up = lexemes(rules)
    print(f"{len(whole)} lexemes:")
    for pattern in whole:
        print(f"  {_short(pattern)}")
    if given_up:
        print("the proof for larger lexemes was too long; these are the first conflicts:")
    print(f"{len(splits)} split, since what follows the one may also go on in the other:")
    for split in splits[:MOST_SPLITS]:
        print(f"  {split.rule}: {_short(split.lexeme)}")
        print(f"    after {split.before_rule}: {_short(split.before)} by {_short(split.characters)!r}")
    if len(splits) > MOST_SPLITS:
        print(f"  … and {len(splits) - MOST_SPLITS} more")


def _short(pattern: str) -> str:
    """A lexeme's pattern for people: printable characters as they are, cut to a line."""
    text = re.sub(r"\\u\{([2-7][0-9a-f])\}", lambda match: chr(int(match[1], 16)), pattern)
    text = re.sub(r"\[([^\]^\\-])\]", r"\1", text)
    return text if len(text) <= 90 else text[:60] + "…" + text[-29:]


def run_grammar_accepts(options: argparse.Namespace) -> int:
    """``codespec grammar accepts``; exits with 1 if the grammar rejects a file."""
    from codespec.grammar import Grammar
    from codespec.grammar.check import accepts_text

    source = read_grammar(options.grammar, options.notation)
    grammar = warned(Grammar.load(source, lenient=options.lenient, extensions=options.extensions))
    texts = (read_input(path, MAX_TEXT) for path in options.files)
    answers = [accepts_text(grammar, text, name) for name, text in texts]
    if options.json:
        fields = ("file", "accepted", "line", "column")
        print(json.dumps([{name: getattr(answer, name) for name in fields} for answer in answers], default=str))
    else:
        for a in answers:
            print(
                f"{a.file}: accepted"
                if a.accepted
                else f"{a.file}: rejected at {a.line}:{a.column}, expected {a.expected}"
            )
    return DONE if all(answer.accepted for answer in answers) else ANSWER_IS_NO
