"""A text that grows by tokens is the same however many come at a time: so it does not depend on drafts."""

import time
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.http.growing_text import GrowingText
from codespec.http.stops import Stops
from codespec.protocols import TokenChance

LETTERS = "ab é😀"
PIECES = [bytes([byte]) for byte in range(256)] + [b"a", b"ab", " é".encode(), "😀"[0].encode()[:2]]

texts = st.text(LETTERS, max_size=12)
stop_lists = st.lists(st.text(LETTERS, min_size=1, max_size=4), max_size=4)


class Vocabulary:
    """Every byte, and some pieces of several."""

    def token_bytes(self, token):
        return PIECES[token]


def cut(text, stops):
    """By trying all that is: the stop text that is complete first, the longest of those that end there."""
    for end in range(len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            if text[:end].endswith(stop):
                return text[: end - len(stop)], stop
    return text, ""


def parts_of(text, places):
    cuts = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(cuts)]


@settings(deadline=None)
@given(texts, stop_lists, st.lists(st.integers(0, 20), max_size=4))
def test_the_stop_that_is_complete_first_wins(text, stops, places):
    follows, shown = Stops(stops), ""
    for part in parts_of(text, places):
        shown += follows.add(part)
        if follows.found:
            break
        whole, found = cut(text, stops)
        assert not found or whole.startswith(shown)
    else:
        shown += follows.end()
    assert (shown, follows.found) == cut(text, stops)


def test_stops_that_overlap():
    """One round of speculation, and token by token."""
    for text, stops, left in [
        ("height, width, height", ["idth, h", "d"], "height, wi"),
        (" beta, gamma, delta]", [" gamma, d", "mma"], " beta, ga"),
        ("xabcd", ["abcd", "bc"], "xa"),
        ("xabc", ["c", "bc", "abc"], "x"),
    ]:
        whole = Stops(stops)
        assert whole.add(text) == left
        single = Stops(stops)
        assert "".join(single.add(each) for each in text if not single.found) == left
        assert whole.found == single.found


def test_long_stop_texts_take_time_that_grows_with_the_text():
    stops = [" " * (1000 + each) + "x" for each in range(64)]
    follows, began = Stops(stops), time.process_time()
    for _ in range(2000):
        follows.add(" ")
    assert time.process_time() - began < 20  # a comparison of all beginnings takes minutes


def grown(tokens, sizes, stops, best):
    """Text, stop text, tokens and what is told of them, in groups of tokens."""
    vocabulary: Any = Vocabulary()
    growing, told, shown, kept, position = GrowingText(vocabulary, stops), [], "", [], 0
    chances = [TokenChance(token, -1.0, ((token, -1.0), *best)) for token in tokens]
    sizes = iter(sizes)
    while True:
        end = min(len(tokens), position + next(sizes, 1))
        group, last = tokens[position:end], end == len(tokens)
        text, count = growing.add(group, chances[position:end], last)
        shown, position = shown + text, end
        kept += group[:count]
        over = last or bool(growing.stopped_by)
        told += growing.told(over)
        assert over or all(each.offset + len(each.shown) <= len(shown) for each in told)
        if over:
            return shown, growing.stopped_by, kept, told


@settings(deadline=None)
@given(
    st.one_of(st.lists(st.integers(0, len(PIECES) - 1), max_size=12), texts.map(lambda text: list(text.encode()))),
    st.lists(st.integers(0, 5), max_size=12),
    stop_lists,
)
def test_groups_of_tokens_change_nothing(tokens, sizes, stops):
    one, grouped = grown(tokens, [], stops, ()), grown(tokens, sizes, stops, ())
    assert one == grouped
    shown, stop, kept, told = one
    data = b"".join(map(Vocabulary().token_bytes, tokens)).decode("utf-8", "replace")
    assert (shown, stop) == cut(data, stops)
    assert "".join(each.shown for each in told) == shown
    assert all(shown[each.offset :].startswith(each.shown) for each in told)
    if stop:  # not a token more than the stop text needs
        before = b"".join(map(Vocabulary().token_bytes, kept[:-1])).decode("utf-8", "ignore")
        assert cut(before, stops)[1] == ""
    else:
        assert kept == list(tokens)
        assert [each.token for each in told] == list(tokens)


def test_a_character_of_several_tokens():
    tokens = list("a😀".encode())
    shown, _, _, told = grown(tokens, [], [], ())
    assert shown == "a😀"
    assert [(each.shown, each.offset) for each in told] == [("a", 0), ("", 1), ("", 1), ("", 1), ("😀", 1)]
    shown, _, _, told = grown(tokens[:-1], [], [], ())
    assert [(each.shown, each.offset) for each in told] == [("a", 0), ("", 1), ("", 1), ("\ufffd", 1)]
