"""Texts under a JSON Schema: formats by example, and patterns against Python's own expressions."""

from __future__ import annotations

import datetime
import json
import random
import re

import pytest

from codespec.grammar import Grammar
from codespec.grammar.check import accepts_text
from codespec.grammar.json.formats import FORMATS

FORMAT_TEXTS = {
    "date": (["2024-02-29", "2000-02-29", "2023-12-31"], ["2023-02-29", "1900-02-29", "2023-04-31", "23-01-01"]),
    "time": (["12:00:00Z", "23:59:60Z", "08:30:06.28+01:30"], ["24:00:00Z", "22:59:60Z", "12:00:00"]),
    "date-time": (["2024-02-29T12:00:00Z"], ["2023-02-29T12:00:00Z", "2024-02-28 12:00:00Z"]),
    "ipv4": (["0.0.0.0", "255.1.2.3"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
    "ipv6": (["::", "::1", "1::d6:192.168.0.1", "1:2:3:4:5:6:7:8"], [":::", "1:2:3:4:5:6:7", "12345::", "::1.2.3"]),
    "json-pointer": (["", "/a/b~0", "/"], ["a", "/~2"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["/a", "01"]),
    "uri-template": (["", "/a{?b,c*}", "{+p:30}/é%20", "{.a.b}"], ["{", "a b", "{a", "{}", "%2", "{a:0}"]),
    "uri-reference": (["", "a/b?c#d", "//h:1/p", "http://[::1]/", "%20", "./a:b"], ["a b", "1:b", "%2", "é"]),
    "iri": (["http://é/ü?q#f"], ["é", "http:// "]),
    "iri-reference": (["é/ü", "http://é/"], ["a b"]),
    "uuid": (["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08"]),
    "duration": (["P1D", "PT2H"], ["PT1D", "1D"]),
    "email": (["a@b.c"], ["a"]),
    "idn-email": (["a@b.c"], ["a"]),
    "idn-hostname": (["a.b"], ["-a"]),
    "hostname": (["a.b"], ["-a"]),
    "regex": (["^(?:a|[a-z]\\d)+?$", "", "x{2,4}", "[^\\]]*"], ["(", "a**", "[", "x{4,2}", "\\"]),
    "uri": (["http://a/b?c#d", "urn:a"], ["//a", "a b"]),
}


@pytest.mark.parametrize("name", FORMAT_TEXTS)
def test_formats(name: str) -> None:
    grammar = Grammar.from_json_schema(json.dumps({"type": "string", "format": name}))
    valid, invalid = FORMAT_TEXTS[name]
    for text in (*valid, *invalid):
        assert accepts_text(grammar, json.dumps(text, ensure_ascii=False)).accepted == (text in valid), text
    assert set(FORMATS) <= set(FORMAT_TEXTS)


def test_a_leap_second_falls_on_the_end_of_the_day_in_utc() -> None:
    grammar, chooser, taken = Grammar.from_json_schema('{"type": "string", "format": "time"}'), random.Random(1), 0
    end = datetime.time(23, 59)
    for _ in range(2_000):
        ahead = datetime.timedelta(minutes=15 * chooser.randrange(-95, 96))
        utc = chooser.choice([end, end, datetime.time(chooser.randrange(24), chooser.randrange(60))])
        local = datetime.datetime.combine(datetime.date(2016, 12, 31), utc) + ahead
        hours, minutes = divmod(abs(ahead) // datetime.timedelta(minutes=1), 60)
        text = f"{local:%H:%M}:60{'-' if ahead < datetime.timedelta() else '+'}{hours:02}:{minutes:02}"
        assert accepts_text(grammar, json.dumps(text)).accepted == (utc == end), text
        taken += utc == end
    assert taken > 1_000


def test_expressions_are_ones_for_python_too() -> None:
    grammar, chooser, taken = Grammar.from_json_schema('{"type": "string", "format": "regex"}'), random.Random(2), 0
    for _ in range(3_000):
        text = "".join(chooser.choice("ab.[]^-()?:*+{}1,2|$\\dw") for _ in range(chooser.randrange(9)))
        if accepts_text(grammar, json.dumps(text)).accepted:
            re.compile(text)
            taken += 1
    assert taken > 300


@pytest.mark.parametrize(
    ("pattern", "letters"),
    [
        (r'[^"]b', 'ab"\\\n'),
        (r"^[^\\]+b", 'ab"\\\n'),
        (r"(?:^|[^\\])b", 'ab"\\\n'),
        (r"[\x00-!#-z]b", 'ab"\\\n'),
        (r"(?<!\\)\$\{(.*?)\}|.*(?<!a)\$b", "\\${}ab"),
        (r"^(?=!+[^!*,]+$)(?=(.*\w)).+$", "!!*a,- "),
        (r"^(?!(sap|b\.c|d)$).*$", "sapb.cd"),
        (r"^(?!a$)(?=b|a)", "ab"),
        (r"^(?=^[^./~])(^((?!\.{2}).)*$).*$", "a./~"),
    ],
)
def test_patterns_find_what_python_finds(pattern: str, letters: str) -> None:
    grammar, chooser = Grammar.from_json_schema(json.dumps({"type": "string", "pattern": pattern})), random.Random(3)
    for _ in range(1_000):
        text = "".join(chooser.choice(letters) for _ in range(chooser.randrange(7)))
        if not text.endswith("\n"):  # before which Python's $ matches, too
            expected = re.search(pattern, text) is not None
            assert accepts_text(grammar, json.dumps(text)).accepted == expected, text
