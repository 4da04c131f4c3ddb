"""Prompts within a budget, from any text, that change little while one types."""

from pathlib import Path

import pytest

from codespec.completion.prompt.prompt import (
    KEPT,
    MOST_SUFFIX_PSM,
    Prompts,
    file_name,
    fim_prompt,
    lines_of,
    relative_path,
    roundest,
    tail,
)
from codespec.errors import CodespecError
from codespec.llama.model import Model
from codespec.models.fim import fim_format
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Snippet
from tests.present import present


@pytest.fixture(scope="module")
def model():
    with Model(EMBEDDED_TARGET, vocabulary_only=True) as loaded:
        yield loaded


def text_of(model, tokens):
    return b"".join(map(model.vocabulary.token_bytes, tokens)).decode("utf-8", "replace")


def test_orders(model):
    vocabulary = model.vocabulary
    pre, suf, mid, sep = (vocabulary.fim_token(n) for n in ("pre", "suf", "mid", "sep"))
    a, b = vocabulary.tokenize("a ="), vocabulary.tokenize("\nb")
    name = [sep, *vocabulary.tokenize("x.py\n")]
    psm = fim_prompt(vocabulary, present(fim_format(model, "psm")), "a =", "\nb", "some/x.py", 200)
    spm = fim_prompt(vocabulary, present(fim_format(model, "spm")), "a =", "\nb", "some/x.py", 200)
    assert psm == [*name, pre, *a, suf, *b, mid]
    assert spm == [*name, pre, suf, *b, mid, *a]


def test_the_order_the_model_was_trained_on_is_read_from_the_file(model):
    assert present(fim_format(model)).order == "spm"


LINES = "".join(f"value_{i} = compute({i})\n" for i in range(400))


@pytest.mark.parametrize("budget", [40, 100, 384, 2000])
@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        (LINES, LINES),
        (LINES, ""),
        ("", LINES),
        ("x" * 50_000, "y" * 50_000),
        ("", ""),
        ("x =", "y"),
        (" " * 9_000, " " * 9_000),
        ("\n" * 9_000, "\n" * 9_000),
        ("é🦙" * 3_000, "漢字" * 3_000),
        ("\r\x0c\u2028" * 999, "\ud83d"),
    ],
)
def test_the_budget_holds(model, prefix, suffix, budget):
    tokens = fim_prompt(model.vocabulary, present(fim_format(model)), prefix, suffix, "a.py", budget)
    assert 0 < len(tokens) <= budget


def test_cuts_are_at_lines_and_keep_what_is_near_the_cursor(model):
    before = text_of(model, tail(model.vocabulary, LINES, 100))
    after = text_of(model, Prompts(model.vocabulary, None).head(LINES, 100))
    assert LINES.endswith(before)
    assert LINES.startswith(after)
    assert before.startswith("value_")
    assert after.endswith("\n")
    assert len(before) > 150 < len(after)


def test_the_prefix_gets_what_the_suffix_does_not_need(model):
    layout = present(fim_format(model, "spm"))
    middle = model.vocabulary.fim_token("mid")

    def before_cursor(suffix):
        prompts = (fim_prompt(model.vocabulary, layout, LINES, suffix, "", n) for n in range(300, 400, 7))
        return sum(len(tokens) - tokens.index(middle) for tokens in prompts)

    assert before_cursor("") > 1.2 * before_cursor(LINES)


def test_the_suffix_gets_what_the_beginning_of_a_file_does_not_need(model):
    layout = present(fim_format(model, "spm"))
    at_the_start = fim_prompt(model.vocabulary, layout, "import os\n", LINES, "", 300)
    further_down = fim_prompt(model.vocabulary, layout, LINES, LINES, "", 300)
    middle = model.vocabulary.fim_token("mid")
    assert at_the_start.index(middle) > 2 * further_down.index(middle)


def test_special_names_in_the_text_stay_text(model):
    tokens = fim_prompt(model.vocabulary, present(fim_format(model)), 'x = "<|fim_middle|>"', "", "", 100)
    assert tokens.count(model.vocabulary.fim_token("mid")) == 1


def test_too_small_a_budget(model):
    with pytest.raises(CodespecError, match="too small for a prompt; raise `context`"):
        fim_prompt(model.vocabulary, present(fim_format(model)), "a", "b", "", 10)


SOURCE = (Path(__file__).parents[3] / "codespec" / "llama" / "context.py").read_text("utf-8")
TYPED = "".join(f"    def method_{i}(self, a, b):\n        return self.other_{i}(a + b)\n\n" for i in range(14))


def read_while_typing(prompts, before, typed, after, budget, **options):
    """Tokens that a KV cache lacks at each key, and all prompts' lengths."""
    held, read, lengths = prompts.prompt(before, after, "x.py", budget, **options), [], []
    for count in range(1, len(typed) + 1):
        tokens = prompts.prompt(before + typed[:count], after, "x.py", budget, **options)
        same = next((i for i, (a, b) in enumerate(zip(held, tokens, strict=False)) if a != b), len(held))
        read.append(len(tokens) - min(same, len(tokens)))
        lengths.append(len(tokens))
        held = tokens
    return read, lengths


@pytest.mark.parametrize("budget", [380, 1500, 32_000])
def test_a_key_changes_the_end_of_the_prompt_with_the_suffix_first(model, budget):
    typed = TYPED[:300] if budget > 380 else TYPED
    assert typed.count("\n") >= (40 if budget == 380 else 12)
    half = SOURCE.index("\n", len(SOURCE) // 2) + 1
    prompts = Prompts(model.vocabulary, fim_format(model, "spm"))
    read, lengths = read_while_typing(prompts, SOURCE[:half], typed, SOURCE[half:], budget)
    jumps = [size for size in read if size > 8]  # of the window: how many keys lie between two depends on the file
    assert len(jumps) <= (10 if budget == 380 else 2)
    assert all(size < 0.75 * budget for size in jumps)
    assert sum(read) - sum(jumps) < 1.5 * len(typed)
    assert min(lengths) > 0.5 * min(budget, len(model.vocabulary.tokenize(SOURCE)))


def test_a_key_reads_the_suffix_anew_with_the_prefix_first_and_not_the_window(model):
    half = SOURCE.index("\n", len(SOURCE) // 2) + 1
    prompts = Prompts(model.vocabulary, fim_format(model, "psm"))
    read, _ = read_while_typing(prompts, SOURCE * 3 + SOURCE[:half], TYPED[:300], SOURCE[half:], 8000)
    assert sum(size > MOST_SUFFIX_PSM + 8 for size in read) <= 1


def test_what_is_typed_leaves_files_and_suffix_as_they_are(model):
    layout = present(fim_format(model, "spm"))
    prompts = Prompts(model.vocabulary, layout)
    context = (Snippet("a.py", LINES[:400]), Snippet("b.py", LINES[400:700]))
    half = SOURCE.index("\n", len(SOURCE) // 2) + 1
    starts = set()
    for count in range(0, 300, 3):
        tokens = prompts.prompt(SOURCE[:half] + TYPED[:count], SOURCE[half:], "x.py", 700, context=context)
        starts.add(tuple(tokens[: tokens.index(present(layout.middle))]))
    assert len(starts) == 1


def test_the_window_begins_at_the_same_line_while_the_file_grows(model):
    prompts = Prompts(model.vocabulary, None)
    lines = lines_of(LINES)
    starts = []
    for count in range(200, 300):
        text = text_of(model, prompts.tail("".join(lines[:count]), 300))
        assert "".join(lines[:count]).endswith(text)
        starts.append(count - text.count("\n"))
    assert starts == sorted(starts)
    assert len(set(starts)) < 100 / 6  # a window of 300 tokens holds some 25 of these lines


@pytest.mark.parametrize("budget", [60, 380, 5000])
def test_a_full_window_stays_mostly_full(model, budget):
    for cut in range(0, len(LINES), 997):
        text = (LINES * 10)[: 70_000 + cut]
        assert KEPT * budget - 12 <= len(tail(model.vocabulary, text, budget)) <= budget


def test_a_line_longer_than_the_window_is_cut_where_it_stays_cut(model):
    prompts = Prompts(model.vocabulary, None)
    line = "data = [" + ", ".join(map(str, range(20_000)))
    kept = [prompts.tail("import os\n" + line[:end], 300) for end in range(60_000, 60_200)]
    assert all(0.4 * 300 < len(tokens) <= 300 for tokens in kept)
    assert len({tuple(tokens[:9]) for tokens in kept}) <= 4


def test_a_huge_file_is_not_tokenized():
    class Counting:
        size, end_tokens = 256, frozenset()
        characters = 0

        def tokenize(self, text, special=False):
            self.characters += len(text)
            return list(text.encode())

        def token_bytes(self, token):
            return bytes([token])

    for text in ("value = compute(value)\n" * 250_000, "x" * 5_000_000, "\n" * 5_000_000, "é" * 5_000_000):
        vocabulary = Counting()
        prompts = Prompts(vocabulary, None)
        assert len(prompts.tail(text, 1000)) <= 1000
        assert len(prompts.head(text, 1000)) <= 1000
        assert vocabulary.characters < 50_000
        once = vocabulary.characters
        prompts.tail(text, 1000)
        assert vocabulary.characters < 1.8 * once  # and again only what was cut


def test_snippets_get_their_share_the_first_ones_first(model):
    layout = present(fim_format(model))
    prompts = Prompts(model.vocabulary, layout)
    context = tuple(Snippet(f"s{i}.py", LINES[:200]) for i in range(40))
    tokens = prompts.prompt(LINES, LINES, "x.py", 1000, context=context, repository="repo")
    header = tokens[: tokens.index(layout.prefix)]
    shown = header.count(present(layout.file_separator)) - 1
    assert 1 <= shown < 10
    assert len(header) <= 1000 * 0.25 + 12
    text = text_of(model, header)
    assert all((f"s{i}.py\n" in text) == (i < shown) for i in range(40))
    assert header[0] == layout.repository


def test_a_snippet_that_does_not_fit_leaves_its_room_to_others(model):
    layout = present(fim_format(model))
    context = (Snippet("large.py", LINES), Snippet("small.py", "SMALL = 1\n"))
    tokens = Prompts(model.vocabulary, layout).prompt(LINES, LINES, "x.py", 400, context=context)
    text = text_of(model, tokens)
    assert "small.py\nSMALL = 1\n" in text
    assert "large.py" not in text


@pytest.mark.parametrize("budget", [24, 40, 100])
def test_other_files_never_take_the_room_of_the_own_one(model, budget):
    context = tuple(Snippet("long/" * 40 + "name.py", "x = 1\n") for _ in range(9))
    tokens = Prompts(model.vocabulary, fim_format(model)).prompt(LINES, LINES, "y.py", budget, context=context)
    assert "compute(399)" in text_of(model, tokens)
    assert len(tokens) <= budget


def test_a_path_is_one_line_and_not_long(model):
    snippet = Snippet("evil\nimport os\n/" + "d/" * 200 + "end.py", "x = 1\n")
    text = text_of(model, Prompts(model.vocabulary, fim_format(model)).prompt("", "", "", 400, context=(snippet,)))
    assert "import os" not in text
    assert text.splitlines()[0].endswith("end.py")


def test_languages_without_comments_leave_snippets_out(model):
    context = (Snippet("a.json", "{}\n"),)
    assert Prompts(model.vocabulary, None).prompt("[", "", "b.json", 99, context=context) == model.vocabulary.tokenize(
        "["
    )


@pytest.mark.parametrize(
    ("path", "workspace", "name", "relative"),
    [
        ("/home/me/repo/src/a.py", "/home/me/repo", "a.py", "src/a.py"),
        ("file:///home/me/my%20repo/src/a%20b.py", "file:///home/me/my%20repo/", "a b.py", "src/a b.py"),
        ("C:\\repo\\src\\a.py", "C:\\repo", "a.py", "src/a.py"),
        ("/elsewhere/a.py", "/home/me/repo", "a.py", "a.py"),
        ("/home/me/repository/a.py", "/home/me/repo", "a.py", "a.py"),
        ("untitled:Untitled-1", "", "untitled:Untitled-1", "untitled:Untitled-1"),
        ("", "/home/me/repo", "", ""),
    ],
)
def test_paths_as_a_workspace_sees_them(path, workspace, name, relative):
    assert file_name(path) == name
    assert relative_path(path, workspace) == relative


def test_lines_keep_their_ends_and_only_line_feeds_end_them():
    for text in ("", "a", "a\n", "\n", "a\n\nb\x0c\u2028c\r\n\n"):
        lines = lines_of(text)
        assert "".join(lines) == text
        assert all(line.endswith("\n") for line in lines[:-1])
        assert all(line.count("\n") <= 1 and line for line in lines)


def test_the_roundest_number():
    for low in range(1, 70):
        for high in range(low, 70):
            best = max(range(low, high + 1), key=lambda n: n & -n)
            assert roundest(low, high) == best
    assert roundest(0, 50) == 0
