"""Heads on a target's hidden state, and the arithmetic of comparing them with a draft."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it and runs this file")
pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make test-train` installs it")

from codespec.cli.main import main  # noqa: E402
from codespec.train.heads import KINDS, Heads, HeadsRun  # noqa: E402
from codespec.train.heads_report import Costs, Tally, head_guesses, right_ones, summarize  # noqa: E402
from codespec.train.model import TINY, Llama  # noqa: E402
from codespec.train.train import Recipe  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_without_a_target(tmp_path, capsys):
    assert main(["train", "heads", "--out", str(tmp_path)]) == 2
    assert "run `codespec train target" in capsys.readouterr().err


class FakeTokenizer:
    """`HeadsRun` hands it on and no more."""


def test_heads_learn_what_the_target_will_say(tmp_path):
    torch.manual_seed(4)
    target = Llama(TINY).eval().requires_grad_(False)
    run = HeadsRun(target, FakeTokenizer(), 2, Recipe(adam_rate=0.01), tmp_path)
    batch = torch.randint(0, TINY.vocabulary, (1, TINY.context + 1)).repeat(4, 1)
    run.step(batch, 10, 0.0)
    before = dict(run.overlaps)
    for _ in range(40):
        run.step(batch, 10, 1.0)
    assert all(run.overlaps[name] > before[name] + 0.1 for name in before)
    # What was learnt from the middle of a row is what a guess there says.
    tokens = batch[0].tolist()
    expected = target(batch[:1, :-1])[0].argmax(dim=-1)
    guessed = head_guesses(target, run.kinds()["hydra"], tokens[:11], tokens[11:70], [])
    for depth in (1, 2):
        assert (guessed[:, depth - 1] == expected[10 + depth : 69 + depth].numpy()).mean() > 0.8


def test_a_new_head_says_what_the_target_says():
    hidden, between = torch.randn(3, 8), [torch.randn(3, 8)] * 2
    for kind in KINDS:
        assert torch.equal(Heads(kind, 8, 2)(2, hidden, between), hidden)


def test_guesses_beyond_the_end_are_wrong():
    guesses = np.array([[2, 3], [3, 9], [-1, -1]])
    assert right_ones(guesses, [1, 2, 3]).tolist() == [[True, True], [True, False], [False, False]]


def test_tokens_per_round_and_acceptance():
    # After token 0 two guesses are right and the target adds one: 3 tokens; after token 3 none: 1; token 4 is the last.
    tally = Tally([np.array([[1, 1], [0, 0], [1, 0], [0, 1], [0, 0]], dtype=bool)])
    assert tally.tokens_per_round(2) == pytest.approx(5 / 3)
    assert tally.tokens_per_round(1) == pytest.approx(5 / 3)
    # First guesses are judged at tokens 0 to 3, second ones at 0 to 2 where the first was right.
    assert tally.acceptance() == [pytest.approx(2 / 4), pytest.approx(1 / 2)]
    costs = Costs(target=[1.0, 1.5, 2.0], by_source={"draft": 0.25})
    assert costs.speed("draft", tally, 2) == pytest.approx((5 / 3) / 2.5)
    assert summarize({"draft": tally}, costs)["verdict"] == "target alone"
    cheap = Costs(target=[1.0, 1.1, 1.2], by_source={"draft": 0.1})
    assert summarize({"draft": tally}, cheap)["verdict"] == "draft"
