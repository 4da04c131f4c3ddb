"""A draft goes on learning from what was accepted; with a tiny target that was trained for a few seconds."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import sysconfig
from itertools import islice
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it and runs this file")
pytest.importorskip("tokenizers", reason="tokenizers is not installed; `make test-train` installs it")

from lsp.helpers import run_command, running, status, until  # noqa: E402
from lsp.test_accepted_log import SERVE  # noqa: E402
from lsprotocol import types  # noqa: E402

from codespec.cli.main import main  # noqa: E402
from codespec.draft.storage.accepted_texts import AcceptedText, accepted_folder, around, keep, training_folder  # noqa: E402
from codespec.llama.model import Model  # noqa: E402
from codespec.models.fim import fim_format  # noqa: E402
from codespec.models.info import inspect  # noqa: E402
from codespec.paths import hold  # noqa: E402
from codespec.train import data, tokenizer  # noqa: E402
from codespec.train.accepted import LEAST, PLACES, AcceptedPacker, accepted_texts  # noqa: E402
from codespec.train.corpus import CorpusDocument  # noqa: E402
from codespec.train.gguf_file import write_gguf  # noqa: E402
from codespec.train.model import TINY, TINY_DRAFT  # noqa: E402
from codespec.train.train import Recipe, TrainingRun  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

FILES = sorted(Path(sysconfig.get_path("stdlib"), "json").glob("*.py"))
NAME = "draft-python-target.gguf"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A target, and a draft for it that has learnt for a moment."""
    out = tmp_path_factory.mktemp("models")
    documents = [CorpusDocument(each.stem, each.name, "python", each.read_text("utf-8")) for each in FILES]
    vocabulary = tokenizer.train((each.text for each in documents), TINY.vocabulary)
    recipe = Recipe(minutes=60, weights=(("python", 1.0),))
    target = TrainingRun(TINY, recipe, vocabulary, out / "target")
    target.train(documents, max_steps=250)
    write_gguf(target.model, vocabulary, out / "target.gguf", "codespec target", "f32", ())
    draft = TrainingRun(TINY_DRAFT, recipe, vocabulary, out / "draft", teacher=target.model.eval())
    draft.train(documents, max_steps=200)
    write_gguf(draft.model, vocabulary, out / "draft-python-weak.gguf", "codespec draft", "q8_0", ("python",))
    return out


@pytest.fixture
def home(models, tmp_path, monkeypatch):
    """A user's data with that draft, and nothing accepted yet."""
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "models").mkdir(parents=True)
    shutil.copy(models / "draft-python-weak.gguf", tmp_path / "data" / "models")
    return tmp_path


def accept(count: int, language: str = "python") -> None:
    """As a user would, who writes the files of a library."""
    chooser = random.Random(5)
    number = 0
    while number < count:
        path = chooser.choice(FILES)
        before, text, behind = data.cut(chooser, path.read_text("utf-8"))
        if text.strip():
            prefix, suffix = around(before + behind, len(before))
            keep(AcceptedText(1e9 + number, str(number), "w", language, path.name, prefix, text, suffix))
            number += 1


def train(models: Path, *options: str) -> int:
    target = ["--language", "python", "--target", str(models / "target.gguf")]
    return main(["train", "draft", "--from-logs", *target, *options])


def test_the_new_draft_is_better_and_is_installed(models, home, capsys):
    accept(90)
    assert train(models, "--minutes", "60", "--max-steps", "200", "--out", str(home / "run")) == 0
    said = capsys.readouterr().out.strip().rpartition("\n")[2]
    assert said.endswith("of the old one's: `auto` drafts with the new one")
    summary = json.loads((home / "run" / "draft-python-target.json").read_text())
    assert summary["better"] is True
    assert summary["from"].endswith("draft-python-weak.gguf")
    assert summary["quality"]["acceptance"] > summary["before"]["acceptance"]
    installed = home / "data" / "models" / NAME
    assert inspect(installed).languages == ("python",)
    before = installed.read_bytes()
    code = train(models, "--minutes", "60", "--max-steps", "1")
    assert code in (0, 1)
    assert (installed.read_bytes() != before) is (code == 0)
    assert not training_folder().exists(), "the texts of the user's are deleted behind a run"


def test_what_it_cannot_learn_from(models, home, capsys, monkeypatch):
    def refused(*options: str) -> str:
        assert train(models, *options) == 2
        return capsys.readouterr().err

    assert f"no accepted completions of python are kept, and {LEAST} are needed: with `keep_accepted" in refused()
    accept(3)
    assert "only 3 accepted completions of python are kept" in refused()
    accept(LEAST)
    assert "--corpus and --from-logs exclude each other" in refused("--corpus", str(home))
    assert "there is no python draft for target.gguf that could learn more" in refused("--from", "none")
    lock = hold(training_folder().with_suffix(".lock"))
    assert "a draft is being trained on accepted completions already" in refused()
    os.close(lock)


def test_the_latest_are_held_out(home):
    accept(100)
    texts = accepted_texts(["python"])
    assert len(texts.places) == 20
    accept(300, "go")
    assert len(accepted_texts(["go"]).places) == PLACES


def test_rows_are_prompts_and_what_was_accepted(models, home):
    accept(50)
    lines = (accepted_folder() / "python.jsonl").read_text("utf-8").splitlines()
    records = [AcceptedText(**json.loads(line)) for line in lines]
    with Model(models / "target.gguf", vocabulary_only=True) as model:
        layout, vocabulary = fim_format(model), model.vocabulary
        assert layout is not None
        orders, middles = set(), 0
        texts = {each.text.strip() for each in records}
        for tokens, learnt in islice(AcceptedPacker(records, vocabulary, layout, 0, 1).rows(400), 40):
            assert (len(tokens), len(learnt)) == (401, 400)
            after = tokens[tokens.index(layout.prefix) + 1]
            orders.add("spm" if after == layout.suffix else "psm")
            sample = tokens[: tokens.index(0)] if 0 in tokens else tokens
            text = b"".join(map(vocabulary.token_bytes, sample)).decode("utf-8", "ignore")
            middles += any(text.rstrip().endswith(each) for each in texts)
        assert orders == {"psm", "spm"}
        assert middles > 30
        # A model that cannot fill in the middle is shown what stands before it alone.
        tokens, _ = next(AcceptedPacker(records, vocabulary, None, 0, 1).rows(200))
        assert layout.markers.isdisjoint(tokens)


@pytest.mark.asyncio
async def test_the_editor_drafts_with_the_new_one_at_once(models, home):
    accept(90)
    options = {"target": {"path": str(models / "target.gguf")}, "time_budget_ms": 0, "max_tokens": 16}
    uri = (home / "a.py").as_uri()
    async with running(home, SERVE, options=options, folder=home) as server:
        server.open("import json\n\n\ndef dump(obj):\n    return \n", uri)
        assert await drafts_with(server, uri, "draft-python-weak")
        assert await run_command(server, "codespec.trainDraft", "python", 1) is True
        await server.ask(3, 9, uri)  # served meanwhile
        await until(lambda: any("draft's tokens" in each for each in server.shown), 300)
        assert "`auto` drafts with the new one" in server.shown[-1]
        assert await drafts_with(server, uri, "draft-python-target")
        [found] = [each for each in server.client.progress_reports.values() if "a draft for" in (each[0].title or "")]
        shares = [each.percentage for each in found[:-1]]
        assert shares == sorted(shares)
        assert found[-1].kind == "end"


async def drafts_with(server, uri: str, name: str) -> bool:
    """Whether it soon does: a draft is loaded while completions are served."""
    for number in range(100):
        document = types.TextDocumentContentChangeWholeDocument(f"import json\n\nvalue_{number} = \n")
        server.change(document, uri, number)
        await server.ask(2, len(f"value_{number} = "), uri)
        if (await status(server))["draft"] == name:
            return True
        await asyncio.sleep(0.1)
    return False
