"""Every regular expression of the package takes linear time for the worst texts that can be made from it."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codespec.completion.ending import brackets, lexical
from codespec.early_errors import c_types
from codespec.grammar.gbnf import gbnf
from codespec.languages import LANGUAGES
from codespec.models.fim import FAMILIES
from codespec.privacy import rules
from codespec.remote.streaming import asked
from tests.patterns import collected
from tests.patterns.collected import Found, Unknown, patterns
from tests.patterns.pumped import slowest

_NAMED = {"walk": SimpleNamespace(text=lambda _: b"a"), "name": None}
SAMPLES: dict[str, list[dict[str, Any]]] = {
    "codespec.completion.ending.brackets:end_of": [{"closer": '"'}],
    "codespec.completion.ending.json_spacing:__init__": [{"after": r"\S", "sign": "{"}],
    "codespec.completion.prompt.imports:_used": [{"name": "a"}],
    "codespec.completion.prompt.prompt:__init__": [{"names": ("<|file_sep|>", "<repo>")}],
    "codespec.early_errors.c:_is_alone": [{"text": b"a"}],
    "codespec.early_errors.c_types:is_value_as_a_type": [{"text": b"a"}],
    "codespec.early_errors.c_types:is_listed": [_NAMED],
    "codespec.early_errors.c_types:is_used": [_NAMED],
    "codespec.early_errors.c_types:is_a_number": [_NAMED],
    "codespec.early_errors.c_types:_is_type": [
        {"text": b"a", "pattern": each} for each in (c_types._LIKE_A_TYPE, c_types._DEFINES)
    ],
    "codespec.edits.places:_pattern": [{"names": {"a", "aa"}}],
    "codespec.early_errors.c_types:is_defined": [_NAMED],
    "codespec.early_errors.c_types:is_defined_as_a_type": [{"text": b"a"}],
    "codespec.early_errors.c_types:is_one": [_NAMED | {"text": b"a"}],
    "codespec.early_errors.walk:mentions": [{"word": b"a"}],
    "codespec.edits.renames:_becomes": [{"new": "a"}],
    "codespec.edits.renames:_others": [{"old": "a", "new": "a"}],
    "codespec.edits.renames:_uses": [{"old": "a", "new": "a"}],
    "codespec.privacy.rules:holds_placed": [{"rule": each} for each in rules.value_rules() if each.path],
    "codespec.languages.python.fields:field_uses": [{"old": b"a"}],
    "codespec.syntax.scopes.reading:__init__": [{"words": {b"a"}}, {"pattern": b"(?<!\\w)a(?!\\w)"}],
    "codespec.syntax.scopes.renaming:_words": [{"name": "a"}],
    "codespec.models.fim:_may_be": [{"family": family} for family in FAMILIES],
    "codespec.models.hub:_choose": [{"ending": "q4_0"}],
    "codespec.remote.streaming.asked:family_named": [{"pattern": pattern} for pattern, _ in asked._NAMED],
    "codespec.syntax.macros:_modes": [{"name": b"a"}],
    "codespec.syntax.macros:_uses": [{"name": b"a"}],
}
"""Values of the names that functions make patterns of."""
BY_LANGUAGE = {
    "codespec.completion.ending.brackets:tokens": brackets.tokens,
    "codespec.completion.ending.lexical:_pattern": lexical._pattern,
}
"""Functions that make a pattern of a language."""
TABLES = {"codespec.privacy.rules:compiled"}
"""Functions that make the patterns of tables: all of them are tried."""
WAYS = {
    "codespec.grammar.lark.source:_TOKEN": "tokens",
    "codespec.grammar.regex:_GROUP": "tokens",
    "codespec.grammar.regex:_PROPERTY": "tokens",
    "codespec.grammar.indentation:_STATEMENT": "lines",
    "codespec.syntax.macros:_ARGUMENTS": "match",
    "codespec.lsp.connection.nesting:_VALUE": "tokens",
}
"""How patterns are used that begin only where another match ended, where a line begins, or at a hundred places."""


def _all() -> dict[str, tuple[re.Pattern[Any], str]]:
    """Every pattern of the package once, with the way in which it is used."""
    found: dict[tuple[re.Pattern[Any], str], str] = {}
    for each in patterns(SAMPLES):
        if isinstance(each, Found):
            found.setdefault((each.pattern, WAYS.get(each.place, each.way)), each.place)
    for place, make in BY_LANGUAGE.items():
        for language in LANGUAGES.values():
            found.setdefault((make(language), "search"), f"{place}:{language.id}")
    for rule in (*rules.token_rules(), *rules.value_rules()):
        found.setdefault((rule.compiled, "search"), f"codespec.privacy.rules:{rule.name}")
    for terminal in gbnf._parser(True).terminals:
        found.setdefault((re.compile(terminal.pattern.to_regexp()), "tokens"), f"gbnf.lark:{terminal.name}")
    return {f"{place} {way}": (pattern, way) for (pattern, way), place in found.items()}


ALL = _all()


def test_all_patterns_are_known() -> None:
    """A pattern that a function makes of names needs samples of these names, in the table above."""
    unknown = {each.function for each in patterns(SAMPLES) if isinstance(each, Unknown)}
    assert unknown == BY_LANGUAGE.keys() | TABLES
    assert len(ALL) > 300


@pytest.mark.parametrize("place", ALL)
def test_time_is_linear(place: str) -> None:
    pattern, way = ALL[place]
    cost = slowest(pattern, way)
    assert cost is None, (
        f"{place} takes {cost.seconds * 1e6:.0f} µs for a character of {cost.text}: {pattern.pattern!r}"
    )


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (r"(a+)+$", "match"),
        (r"(?:a|b|ab)*c", "match"),
        (r"\s+$", "search"),
        (r"^\s*a", "search"),
        (r"\s*,\s*", "search"),
        (r'"(?:\\.|[^"])*"', "search"),
        (r"/\*.*?\*/", "search"),
        (r"(.*/)?(\.ssh|\.gnupg)/.*", "fullmatch"),
        (r"#?(.+?)(?:~\d*~?|#|\.(?:bak|\d{1,8}))+", "fullmatch"),
        (r"(?:[\w.-]*[\"']?[^<>\n]{0,80})?>", "search"),
        (r"a{1,9}b?a{1,500}b?a{1,500}c", "search"),
        (r"ably(?:.|[\n\r]){0,32}?(?:SECRET|ACCESS|KEY|TOKEN)(?:.|[\n\r]){0,32}?([a-f0-9]{40})", "search"),
    ],
)
def test_a_bad_pattern_is_found(pattern: str, way: str) -> None:
    assert slowest(re.compile(pattern, re.MULTILINE), way) is not None


def test_a_new_pattern_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fresh.py").write_text(
        "import re\nKEPT = {1: [re.compile('a+b')]}\n"
        "def of(name):\n    return re.search('(c+)+d', name) or re.search(name + 'e', name)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(collected, "modules", lambda: [("fresh", tmp_path / "fresh.py")])
    found = list(patterns({}))
    assert {each.pattern.pattern for each in found if isinstance(each, Found)} == {"a+b", "(c+)+d"}
    assert [each.function for each in found if isinstance(each, Unknown)] == ["fresh:of"]
