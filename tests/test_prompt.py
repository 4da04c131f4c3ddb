"""Prompts within a budget, from any text."""

import pytest

from codespec.completion.prompt import fim_prompt, head, tail
from codespec.errors import CodespecError
from codespec.llama.model import Model
from codespec.models.fim import fim_format
from codespec.models.registry import EMBEDDED_TARGET


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
    psm = fim_prompt(vocabulary, fim_format(model, "psm"), "a =", "\nb", "some/x.py", 200)
    spm = fim_prompt(vocabulary, fim_format(model, "spm"), "a =", "\nb", "some/x.py", 200)
    assert psm == [*name, pre, *a, suf, *b, mid]
    assert spm == [*name, pre, suf, *b, mid, *a]


def test_the_order_the_model_was_trained_on_is_read_from_the_file(model):
    assert fim_format(model).order == "spm"


LINES = "".join(f"value_{i} = compute({i})\n" for i in range(400))


@pytest.mark.parametrize("budget", [40, 100, 384, 2000])
@pytest.mark.parametrize(
    ("prefix", "suffix"), [(LINES, LINES), (LINES, ""), ("", LINES), ("x" * 50_000, "y" * 50_000), ("", "")]
)
def test_the_budget_holds(model, prefix, suffix, budget):
    tokens = fim_prompt(model.vocabulary, fim_format(model), prefix, suffix, "a.py", budget)
    assert 0 < len(tokens) <= budget


def test_cuts_are_at_lines_and_keep_what_is_near_the_cursor(model):
    before = text_of(model, tail(model.vocabulary, LINES, 100))
    after = text_of(model, head(model.vocabulary, LINES, 100))
    assert LINES.endswith(before)
    assert LINES.startswith(after)
    assert before.startswith("value_")
    assert after.endswith("\n")
    assert len(before) > 150 < len(after)


def test_the_prefix_gets_what_the_suffix_does_not_need(model):
    layout = fim_format(model, "spm")
    with_suffix = fim_prompt(model.vocabulary, layout, LINES, LINES, "", 300)
    alone = fim_prompt(model.vocabulary, layout, LINES, "", "", 300)
    middle = model.vocabulary.fim_token("mid")
    assert len(alone) - alone.index(middle) > 1.2 * (len(with_suffix) - with_suffix.index(middle))


def test_special_names_in_the_text_stay_text(model):
    tokens = fim_prompt(model.vocabulary, fim_format(model), 'x = "<|fim_middle|>"', "", "", 100)
    assert tokens.count(model.vocabulary.fim_token("mid")) == 1


def test_too_small_a_budget(model):
    with pytest.raises(CodespecError, match="too small for a prompt; raise `context`"):
        fim_prompt(model.vocabulary, fim_format(model), "a", "b", "", 10)
