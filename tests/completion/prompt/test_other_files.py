"""Pieces of other files: which are kept, which are shown, and that what is shown stays while somebody types."""

from __future__ import annotations

import random

from codespec.completion.prompt.other_files import (
    EVERY_S,
    MOVED_LINES,
    PIECES,
    Chooser,
    FileChunk,
    Ring,
    around,
    piece_spans,
    relevance,
    select,
    without_ends,
    words,
)


def pieces(lines: list[str], row: int, count: int) -> list[list[str]]:
    return [without_ends(lines, each) for each in piece_spans(lines, row, count)]


def lines(topic: str, count: int = 10) -> list[str]:
    return [f"{topic}_{number} = make_{topic}({number})" for number in range(count)]


def chunk(topic: str, number: int = 1, count: int = 10) -> FileChunk:
    text = lines(topic, count)
    return FileChunk(f"file:///w/{topic}.py", "/w", f"{topic}.py", tuple(text), words("\n".join(text)), number)


def paths(snippets) -> list[str]:
    return [each.path for each in snippets]


class Session:
    """A ring of some topics, and somebody who works in ``file:///w/a.py``."""

    def __init__(self, *topics: str, size: int = 8, budget: int = 10_000) -> None:
        self.now, self.asked, self.near = 0.0, 0, lines("alpha")
        self.ring = Ring(size)
        self.chooser = Chooser(self.ring, budget, lambda: self.now)
        for topic in topics:
            self.add(topic)

    def add(self, topic: str, text: list[str] | None = None, group: str = "/w") -> bool:
        return self.ring.add(f"file://{group}/{topic}.py", group, f"{topic}.py", text or lines(topic))

    def shown(self, row: int = 0, document: str = "file:///w/a.py", group: str = "/w") -> list[str]:
        def near():
            self.asked += 1
            return self.near

        return paths(self.chooser.choose(document, group, row, near))


def test_a_chunk_takes_the_place_of_those_that_are_nearly_the_same():
    session = Session("one", "two")
    changed = lines("one", 40)
    assert session.add("one", changed)
    assert session.add("one", [*changed[:-1], "something = else_()"])
    assert [each.lines[-1] for each in session.ring.chunks if each.path == "one.py"] == [
        "one_9 = make_one(9)",
        "something = else_()",
    ]
    assert session.add("copy", changed), "a copy of it under another name"
    assert [each.path for each in session.ring.chunks] == ["one.py", "two.py", "copy.py"]


def test_of_too_many_chunks_the_oldest_goes():
    session = Session("one", "two", "three", size=2)
    assert [each.path for each in session.ring.chunks] == ["two.py", "three.py"]
    assert session.shown() == ["three.py", "two.py"]
    session.add("three", lines("more"))
    assert [each.path for each in session.ring.chunks] == ["two.py", "three.py"], "of those with most"
    session.ring.resize(0)
    session.add("four")
    assert not session.ring.chunks


def test_what_says_nothing_is_no_chunk():
    ring = Ring(4)
    assert not ring.add("u", "/w", "a.py", ["", "  ", "x"])
    assert not ring.add("u", "/w", "a.json", ["{", "x" * 1000, "}"])
    assert not ring.chunks


def test_looking_at_the_same_place_again_changes_nothing_for_others():
    session = Session("one", "two")
    version = session.ring.version("file:///w/a.py")
    assert not session.add("two")
    assert session.add("one"), "it is the latest now"
    assert [each.path for each in session.ring.chunks] == ["two.py", "one.py"]
    assert session.ring.version("file:///w/a.py") == version


def test_a_document_is_not_shown_itself_nor_other_workspaces():
    session = Session("one", "two")
    session.add("three", group="/v")
    assert session.shown(document="file:///w/one.py") == ["two.py"]
    assert session.shown(document="file:///v/x.py", group="/v") == ["three.py"]
    assert session.shown(document="file:///u/x.py", group="/u") == []


def test_what_repeats_the_text_near_the_cursor_is_not_shown():
    session = Session("one", "two")
    session.near = [*lines("two"), "more = 1"]
    assert session.shown() == ["one.py"]


def test_the_most_relevant_chunks_that_fit_are_shown():
    shared = {"far": [], "near": ["alpha_1", "make_alpha"], "nearest": [f"alpha_{number}" for number in range(9)]}
    texts = {topic: [*lines(topic), *(f"call({word})" for word in shared[topic])] for topic in shared}
    session = Session()
    for topic, text in texts.items():
        session.add(topic, text)
    budget = sum(each.size for each in session.ring.chunks if each.path != "far.py")
    assert paths(each.snippet for each in select(session.ring.chunks, [], session.near, budget)) == [
        "nearest.py",
        "near.py",
    ]
    assert session.shown() == ["nearest.py", "near.py", "far.py"]


def test_typing_does_not_change_what_is_shown():
    session = Session(*"bcdefgh", size=16, budget=1_000)
    first = session.shown()
    assert len(first) > 1
    generator = random.Random(7)
    for key in range(300):
        session.near = lines(generator.choice("bcdefgh"))
        session.ring.add("file:///w/a.py", "/w", "a.py", lines(f"own{key}"))  # of what is typed itself
        session.now += EVERY_S / 400
        assert session.shown(row=key % MOVED_LINES) == first
    assert session.asked == 1


def test_what_is_shown_keeps_its_place_when_there_is_more():
    session = Session("one", "two")
    first = session.shown()
    session.add("three", [*lines("alpha", 5), *lines("three")])  # by far the most relevant
    assert session.shown() == [*first, "three.py"]
    session.ring.remove("file:///w/one.py")
    assert session.shown() == ["two.py", "three.py"]


def test_the_choice_is_looked_at_again_after_a_while_and_far_away():
    session = Session("one")
    session.shown()
    session.shown(row=MOVED_LINES)
    assert session.asked == 1
    session.shown(row=MOVED_LINES + 1)
    session.now += EVERY_S + 1
    session.shown(row=MOVED_LINES + 1)
    assert session.asked == 3
    session.chooser.forget("file:///w/a.py")
    session.shown()
    assert session.asked == 4


def test_only_something_clearly_more_relevant_makes_room():
    budget = chunk("one").size + 50
    one, two = chunk("one", 1), chunk("two", 2)
    near = lines("one", 4)[:2]
    assert select([one, two], [], near, budget) == (one,)
    assert select([one, two], [two], near, budget) == (one,)
    other = ["unrelated = words()"]
    assert select([one, two], [one], other, budget) == (one,), "the later one is no better"
    assert select([one, two], [], other, budget) == (two,)
    slightly = ["one_1 two_1 two_2 make_two make_one one_2"]
    assert select([one, two], [one], slightly, budget) == (one,)


def test_choosing_again_changes_nothing():
    generator = random.Random(3)
    for _ in range(200):
        topics = [f"topic{number}" for number in range(10)]
        chunks = [chunk(topic, number, generator.randrange(3, 30)) for number, topic in enumerate(topics)]
        near = [line for topic in generator.sample(topics, 3) for line in lines(topic, 2)]
        budget = generator.randrange(0, 4_000)
        shown = select(chunks, generator.sample(chunks, 4), near, budget)
        assert sum(each.size for each in shown) <= budget
        assert len(set(shown)) == len(shown)
        assert select(chunks, shown, near, budget) == shown


def test_of_open_documents_what_is_relevant_is_shown():
    session = Session()
    text = [*lines("far", 30), "", *lines("alpha", 30), "", *lines("more", 30)]
    session.ring.open("file:///w/b.py", "/w", "b.py", pieces(text, 0, 30))
    session.near = ["x = make_alpha(alpha_1, alpha_2, alpha_3)"]
    [shown] = session.chooser.choose("file:///w/a.py", "/w", 0, lambda: session.near)
    assert shown.text.startswith("alpha_0 = ")
    assert session.shown(document="file:///w/b.py") == []
    session.ring.add("file:///w/b.py", "/w", "b.py", lines("alpha", 30)[3:])
    assert session.shown() == ["b.py"], "nearly the same place"
    session.ring.close("file:///w/b.py")
    [shown] = session.chooser.choose("file:///w/a.py", "/w", 0, lambda: session.near)
    assert shown.text.startswith("alpha_3 = "), "it is still a place that was worked on"


def test_what_is_open_and_unchanged_stays_as_it_is():
    session = Session()
    session.near = ["x = make_alpha(alpha_1, alpha_2, alpha_3)"]
    text = ["class A:", *(f"    f{number}: int" for number in range(12)), ""] * 2 + lines("alpha", 20)
    for number in range(3):
        session.ring.open("file:///w/b.py", "/w", "b.py", pieces([f"x = {number}", *text], 0, 20))
        [before] = session.chooser.choose("file:///w/a.py", "/w", 0, lambda: session.near)
        assert before.text.startswith("alpha_0")
    version = session.ring.version("file:///w/a.py")
    session.ring.open("file:///w/b.py", "/w", "b.py", pieces(["x = 2", *text], 0, 20))
    assert session.ring.version("file:///w/a.py") == version
    session.ring.resize(0)
    assert session.shown() == []
    session.ring.open("file:///w/b.py", "/w", "b.py", pieces(text, 0, 20))
    assert session.shown() == []


def test_pieces_begin_at_the_top_level_and_are_bounded():
    text = ["import a", "", "", "def f():", "    x = [", "    ]", "", "    return 1", "", "def g(): pass", "y = 1", ""]
    assert pieces(text, 0, 6) == [text[:3], text[3:9], text[9:]]
    assert pieces([], 0, 6) == [[]]
    assert pieces(["a\r\n", "b"], 5, 6) == [["a", "b"]]
    many = [f"x{number} = 1\n" for number in range(10_000)]
    for row in (0, 5_000, 9_999, 20_000):
        found = [line for piece in pieces(many, row, 10) for line in piece]
        assert len(found) == 10 * PIECES
        assert f"x{min(row, 9_999)} = 1" in found


def test_lines_around_a_row():
    text = [f"{number}\r\n" for number in range(10)]
    assert around(text, 0, 4) == ["0", "1", "2", "3"]
    assert around(text, 5, 4) == ["2", "3", "4", "5"]
    assert around(text, 9, 4) == ["6", "7", "8", "9"]
    assert around(text, 3, 99) == [line.strip() for line in text]
    assert around([""], 0, 4) == [""]


def test_relevance_is_the_share_of_identifiers_in_common():
    assert words("def f(first, second=0x1F): return first") == {"def", "first", "second", "return"}
    assert relevance(frozenset("abc"), frozenset("bcd")) == 0.5
    assert relevance(frozenset(), frozenset()) == 0
