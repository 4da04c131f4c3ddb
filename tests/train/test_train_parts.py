"""Pieces of training that need no trained model: samples, rates, losses, what is refused."""

import argparse
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it and runs this file")
pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make test-train` installs it")

import codespec  # noqa: E402
from benchmarks.training import compare  # noqa: E402
from codespec.cli.main import main  # noqa: E402
from codespec.cli.options import build_parser  # noqa: E402
from codespec.draft.draft_length import FixedLengthDraft  # noqa: E402
from codespec.languages import by_id  # noqa: E402
from codespec.models.info import inspect  # noqa: E402
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET  # noqa: E402
from codespec.protocols import Limits  # noqa: E402
from codespec.train import data, distil, judge, muon, pipeline  # noqa: E402
from codespec.train.corpus import CorpusDocument  # noqa: E402
from codespec.train.distilled import CHUNK, DistilledLoss  # noqa: E402
from codespec.train.neighbours import embeddings_of  # noqa: E402
from codespec.train.own_thread import in_own_thread  # noqa: E402
from codespec.train.teacher import Lesson, likeliest  # noqa: E402
from codespec.train.train import IGNORED, SHARES, Recipe, labels_of, rate_factor, recipe_of  # noqa: E402
from codespec.train.trim import TrimmedVocabulary  # noqa: E402
from tests.present import present  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_fim_pieces_hold_the_whole_text():
    rnd = random.Random(3)
    text = "".join(f"line {n}\n" for n in range(30))
    orders = set()
    for _ in range(200):
        prompt, middle = data.fim(rnd, text)
        rest = prompt.removeprefix("<|fim_prefix|>")
        if rest.startswith("<|fim_suffix|>"):
            orders.add("spm")
            suffix, prefix = rest.removeprefix("<|fim_suffix|>").split("<|fim_middle|>")
        else:
            orders.add("psm")
            prefix, suffix = rest.removesuffix("<|fim_middle|>").split("<|fim_suffix|>")
        assert prefix + middle + suffix == text
    assert orders == {"psm", "spm"}


def test_nothing_is_learnt_from_where_samples_meet():
    batch = torch.tensor([[5, 6, 7, 8]])
    assert labels_of(batch, (7,)).tolist() == [[6, IGNORED, 8]]


def test_a_recipe_by_options():
    usual = recipe_of(build_parser().parse_args(["train", "draft", "--language", "c"]))
    assert usual == Recipe(minutes=20.0, compiled=True)
    options = ["--minutes", "3", "--rows", "8", "--rate", "0.5", "--decay", "0.98"]
    asked = recipe_of(build_parser().parse_args(["train", "target", "--out", "x", *options]))
    assert asked == Recipe(3.0, 8, muon_rate=usual.muon_rate / 2, adam_rate=usual.adam_rate / 2, decay=0.98)


def test_a_general_draft_learns_most_from_languages_without_one():
    shares = dict(pipeline.shares("general"))
    assert set(shares) == set(SHARES)
    without = sum(share for name, share in shares.items() if not by_id(name).draft)
    assert 0.5 < without / sum(shares.values()) < 0.75
    assert set(dict(pipeline.shares("cpp"))) == {"c", "cpp"}


def test_rates_warm_up_hold_and_decay():
    recipe = Recipe(warm_up=0.1, decay=0.2)
    factors = [rate_factor(p, recipe) for p in (0.0, 0.05, 0.5, 0.79, 0.9, 1.0)]
    assert factors == pytest.approx([0.02, 0.5, 1.0, 1.0, 0.5, 0.0])


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 16, 4), (1, 4, 16)])
def test_orthogonalized_matrices_have_singular_values_near_one(shape):
    torch.manual_seed(0)
    values = torch.linalg.svdvals(muon.orthogonalize(torch.randn(shape)))
    assert 0.6 < values.min() <= values.max() < 1.3


def loss_of_logits(logits, labels, learnt, ids, shares, weight):
    """The loss by its definition, all logits at once."""
    own = logits.log_softmax(-1)
    picked = own.gather(-1, ids)
    likely = (picked.exp() * (shares > 0)).sum(-1)
    soft = -(shares * picked).sum(-1) - (1 - shares.sum(-1)).clamp(min=0) * torch.log1p(-likely.clamp(max=1 - 1e-6))
    hard = -own.gather(-1, labels[:, None])[:, 0]
    return ((weight * soft + (1 - weight) * hard) * learnt).sum() / learnt.sum()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("weight", [0.0, 0.9, 1.0])
def test_the_loss_of_chunks_is_that_of_all_logits(weight, compiled):
    torch.manual_seed(0)
    rows, tokens = 2 * CHUNK + 17, 50
    hidden, embeddings = torch.randn(rows, 8, requires_grad=True), torch.randn(tokens, 8, requires_grad=True)
    labels, learnt = torch.randint(tokens, (rows,)), torch.rand(rows) < 0.8
    shares, ids = torch.randn(rows, tokens).mul(2).softmax(-1).topk(16)
    shares[::3, 5:] = 0  # as of tokens that a trimmed draft lacks, which are one token to it
    ids[::3, 5:] = tokens - 1
    shares[1] = torch.eye(16)[0]  # a text's own next token
    found = DistilledLoss(weight, torch.float32, compiled)(hidden, embeddings, labels, learnt, ids, shares)
    gradients = torch.autograd.grad(found, (hidden, embeddings))
    expected = loss_of_logits(hidden @ embeddings.T, labels, learnt, ids, shares, weight)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    for ours, theirs in zip(gradients, torch.autograd.grad(expected, (hidden, embeddings)), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-7)


def test_what_a_trimmed_draft_lacks_is_part_of_the_rest():
    trim = TrimmedVocabulary(np.array([1, 3, 4]), 6)
    shares = np.array([[[0.5, 0.3, 0.1], [0.6, 0.25, 0.1]]], np.float16)
    ids = np.array([[[3, 2, 5], [0, 4, 1]]], np.int32)
    lesson = trim.lesson(Lesson(np.array([[2, 4, 5]], np.int32), np.array([[True, True]]), ids, shares))
    assert lesson.tokens.tolist() == [[3, 2, 3]]
    assert lesson.learnt.tolist() == [[True, False]]
    assert lesson.ids.tolist() == [[[1, 3, 3], [3, 2, 0]]]
    assert (lesson.shares > 0).tolist() == [[[True, False, False], [False, True, True]]]
    torch.manual_seed(0)
    logits = torch.randn(2, 4)
    own = logits.softmax(-1)[0]
    loss = DistilledLoss(1.0, torch.float32, compiled=False)(
        logits,
        torch.eye(4),
        torch.tensor([2, 3]),
        torch.from_numpy(lesson.learnt[0]),
        torch.from_numpy(lesson.ids[0].astype(np.int64)),
        torch.from_numpy(lesson.shares[0].astype(np.float32)),
    )
    assert float(loss) == pytest.approx(float(-0.5 * own[1].log() - 0.5 * (1 - own[1]).log()), rel=1e-3)


def test_a_whole_draft_stays_whole_where_no_text_says_what_is_frequent(tmp_path):
    options = argparse.Namespace(trim=None)
    info = replace(inspect(EMBEDDED_TARGET), vocabulary_size=50_000)
    assert distil._trim(options, info, tmp_path, EMBEDDED / "draft-python.gguf", []) is None
    assert not list(tmp_path.iterdir())


def test_tokens_with_the_same_neighbours_begin_alike():
    """Texts in which one of five tokens of each of three kinds follows one of the kind before."""
    rng = np.random.default_rng(1)
    kinds = np.arange(801) % 3
    tokens = (5 * kinds + rng.integers(5, size=(8, 801))).astype(np.int32)
    lesson = Lesson(tokens, np.ones((8, 800), bool), tokens[:, 1:, None], np.ones((8, 800, 1), np.float16))
    found = embeddings_of([lesson], 17, 8)
    assert found.shape == (17, 8)  # the last two are in no text
    assert torch.isfinite(found).all()
    assert (found[:15].norm(dim=1) - 8**0.5).abs().max() < 1e-4
    assert (found[15:].norm(dim=1) > 0.5).all()
    alike = torch.nn.functional.cosine_similarity(found[:15, None], found[None, :15], dim=-1).view(3, 5, 3, 5)
    within = torch.stack([alike[each, :, each].mean() for each in range(3)])
    across = torch.stack([alike[each, :, (each + 1) % 3].mean() for each in range(3)])
    assert within.min() > across.max() + 0.3
    assert (embeddings_of([lesson], 17, 8) == found).all()
    assert embeddings_of([lesson], 17, 40).shape == (17, 40)  # wider than there are tokens


def test_the_likeliest_tokens():
    logits = np.random.default_rng(1).normal(size=(5, 100)).astype(np.float32)
    ids, shares = likeliest(logits)
    exact = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert (ids[:, 0] == logits.argmax(1)).all()
    assert np.allclose(np.take_along_axis(exact, ids, 1), shares, atol=1e-3)
    assert (np.diff(shares.astype(np.float32), axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--corpus DIR"),
        (("--corpus", "nowhere"), "nowhere: no such folder"),
        (("--target", "nonesuch", "--corpus", "."), "no model 'nonesuch'"),
        (("--passes", "2", "--corpus", "."), "--passes is for a run folder"),
        (("--vocabulary", "none.gguf", "--corpus", "."), "none.gguf"),
        (("--vocabulary", "a.gguf", "--target", "b", "--corpus", "."), "leave out --target"),
    ],
)
def test_what_a_draft_cannot_be_trained_from(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    assert main(["train", "draft", "--language", "python", "--minutes", "0.1", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_what_is_accepted_of_a_known_text_is_what_is_accepted_in_the_loop():
    source = Path(codespec.__file__).parent / "draft"
    documents = [CorpusDocument("codespec", each.name, "python", each.read_text()) for each in source.glob("n*.py")]
    places = [replace(each, tokens=32) for each in judge.line_ends(documents, 12)]
    shapes = (source.parents[1] / "examples" / "shapes.py").read_text()
    begun = shapes.index("        return self.width * self.height")
    places.append(judge.InfillingExample("shapes.py", shapes[: begun + 2], "", shapes[begun + 2 :], 32))  # ends at once
    draft = EMBEDDED / "draft-python.gguf"

    def measured():
        engine = judge.judging_engine(EMBEDDED_TARGET)
        try:
            said = list(judge.said_by_target(engine, places))
            found = judge.accepted_of(draft, engine, said)
            speculate = FixedLengthDraft(present(engine.drafts.model), judge.LENGTH)
            in_the_loop = []
            for each in said:
                chunks = engine.generate(each.prompt, limits=Limits(32), speculate=speculate)
                text = [token for chunk in chunks for token in present(chunk.round).tokens]
                in_the_loop.append((text, engine.statistics.drafted, engine.statistics.accepted))
            return said, found.at_places, in_the_loop
        finally:
            engine.close()

    said, found, in_the_loop = in_own_thread(measured)
    assert sum(accepted for _, accepted in found) > 30
    # Noise of a pass over several rows may change what a target says at a place, and what a draft proposes.
    same = [n for n, (text, *_) in enumerate(in_the_loop) if text == said[n].text]
    assert len(same) >= len(places) / 2
    assert sum(found[n] == in_the_loop[n][1:] for n in same) >= len(same) - 1
    stopped = [n for n in same if said[n].stopped]
    assert stopped
    assert [found[n][0] for n in stopped] == [in_the_loop[n][1] for n in stopped]


def test_how_sure_a_ratio_is():
    places = [(4, n % 5) for n in range(240)]  # half of what is proposed
    worse = [(4, (n % 5) * 3 // 4) for n in range(240)]
    own, other = judge.GreedyAcceptance(places), judge.GreedyAcceptance(worse)
    value, low, high = map(float, re.findall(r"[\d.]+", compare._ratio(own, other)))
    assert value == pytest.approx(own.share / other.share, abs=0.01)
    assert 1 < low < value < high
    few = compare._ratio(judge.GreedyAcceptance(places[:20]), judge.GreedyAcceptance(worse[:20]))
    wider = [float(each) for each in re.findall(r"[\d.]+", few)[1:]]
    assert wider[1] - wider[0] > high - low
    assert compare._ratio(own, judge.GreedyAcceptance([(4, 0)] * 240)) == compare._ratio(own, None) == "–"


@pytest.mark.parametrize(
    ("agreement", "acceptance", "better"),
    [
        (0.67, 0.65, True),  # a dozen places are few
        (0.67, 0.60, False),
        (0.62, 0.69, False),
        (None, 0.67, True),
        (None, 0.65, False),
    ],
)
def test_which_draft_is_better(agreement, acceptance, better):
    old = judge.DraftQuality(0.63, 0.66, 0.78, 3.5, 1.5, 0.0, 0.7)
    found = replace(old, agreement=agreement, acceptance=acceptance)
    assert distil._is_better(found, old) is better
