"""Lowers the shipped grammars when the package is built."""

from __future__ import annotations

import contextlib
import os
import shutil

from codespec.grammar import cache
from codespec.grammar.errors import GrammarError
from codespec.grammar.grammar import Grammar
from codespec.grammar.indentation import UNIT, usual
from codespec.grammar.library import shipped
from codespec.languages import LANGUAGES


def lower_beforehand() -> None:
    """Fill ``cache.BEFOREHAND``, as building the package does: each shipped grammar from its root, and from where a
    document is entered in the middle; those of blocks by indentation for the usual ones."""
    shutil.rmtree(cache.BEFOREHAND, ignore_errors=True)
    os.environ[cache.VARIABLE] = str(cache.BEFOREHAND)
    units = {each.grammar: each.unit for each in LANGUAGES.values()}
    for name in shipped():
        leveled = Grammar.load(name).leveled
        for levels in usual(units.get(name, UNIT)) if leveled else ():
            Grammar.load(name, levels=levels)
        with contextlib.suppress(GrammarError):  # not every grammar has them
            Grammar.load(name, start="statements")
    for path in cache.BEFOREHAND.iterdir():
        path.chmod(0o644)  # for everybody who may use the package
