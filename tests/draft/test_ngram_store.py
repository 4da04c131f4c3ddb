"""What workspaces teach: only what is new, within bounds, apart from each other, and kept for the next session."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.completion.completer import Completer
from codespec.completion.learning import WorkspaceLearner
from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.draft.ngram import BREAK, NgramDraft, NgramIndex
from codespec.draft.ngram_store import CONTEXT, MOST_OPEN, NgramStore, WorkspaceNgrams
from codespec.draft.storage.token_log import TokenLog, workspace_file
from codespec.engine.local import LocalEngine
from codespec.models.registry import EMBEDDED_TARGET
from codespec.paths import folder_of
from codespec.privacy.secrets import is_secret
from codespec.protocols import Limits, Sampling
from codespec.speculative.sampling import LogitSampler
from tests.drafting import drafting_engine

VOCABULARY = "0123abcd"
SAMPLER = LogitSampler(Sampling(), 0)


def text(seed: int, length: int = 300) -> list[int]:
    """Tokens that hardly repeat themselves."""
    chooser = random.Random(seed)
    return [chooser.randrange(5000) for _ in range(length)]


def proposal(learnt: WorkspaceNgrams, tail: Sequence[int], count: int = 8) -> list[int]:
    left = iter(range(count))
    draft = NgramDraft(learnt.index)
    return list(draft.propose(tail, None, SAMPLER, lambda _: next(left, None) is not None).tokens)


def log(tmp_path: Path, cap: int = 100_000) -> TokenLog:
    return TokenLog(tmp_path / "a.sqlite", VOCABULARY, cap)


def test_a_document_is_proposed_in_another() -> None:
    learnt, tokens = WorkspaceNgrams(), text(1)
    assert learnt.document("a", tokens) == 300
    assert proposal(learnt, tokens[100:110]) == tokens[110:118]
    assert proposal(learnt, tokens[-2:]) == [], "nothing follows the end"


def test_only_what_changed_is_taught() -> None:
    learnt, tokens = WorkspaceNgrams(), text(1, 5000)
    learnt.document("a", tokens)
    assert learnt.document("a", tokens) == 0
    new = text(2, 20)
    assert 20 < learnt.document("a", tokens[:2500] + new + tokens[2500:]) <= 20 + 4 * CONTEXT
    assert proposal(learnt, tokens[2495:2500] + new[:2]) == new[2:10], "found from the text before it"
    assert proposal(learnt, new[-3:], 4) == tokens[2500:2504], "and leads to the text behind it"
    assert 0 < learnt.document("a", tokens[:1000] + tokens[1040:2500] + new + tokens[2500:]) <= 4 * CONTEXT
    assert proposal(learnt, tokens[992:1000], 4) == tokens[1040:1044], "where something was deleted"


def test_what_another_document_taught_is_not_taught_again() -> None:
    learnt, tokens = WorkspaceNgrams(), text(1, 2000)
    learnt.document("a", tokens)
    assert learnt.document("copy", tokens) == 0
    added = text(3, 50)
    assert 50 < learnt.document("b", tokens[500:1500] + added) <= 50 + 2 * CONTEXT
    assert learnt.document("c", text(4, 10)) == 10, "short ones count as well"
    assert learnt.document("d", []) == 0
    assert learnt.document("e", [7]) == 1


def test_what_was_left_out_leads_nowhere() -> None:
    learnt, tokens = WorkspaceNgrams(), text(1)
    learnt.document("a", [*tokens[:50], BREAK, *tokens[60:]])
    assert proposal(learnt, tokens[40:50]) == []
    assert proposal(learnt, tokens[60:64], 4) == tokens[64:68]


def test_accepted_text_is_found_from_what_was_before_it(tmp_path: Path) -> None:
    learnt = WorkspaceNgrams(log(tmp_path))
    context, tokens = text(1, 100), text(2, 30)
    assert learnt.accepted(context, tokens) == CONTEXT + 30
    assert proposal(learnt, context[-3:]) == tokens[:8]
    assert learnt.accepted(context, []) == 0
    learnt.flush()
    assert proposal(WorkspaceNgrams(log(tmp_path)), context[-3:]) == tokens[:8]


def test_the_oldest_is_forgotten() -> None:
    learnt = WorkspaceNgrams(cap=1000)
    texts = [text(seed, 200) for seed in range(40)]
    for number, tokens in enumerate(texts):
        learnt.document(f"{number}", tokens)
        assert len(learnt.index.tokens) <= 1000
        assert proposal(learnt, tokens[20:30]) == tokens[30:38]
    assert proposal(learnt, texts[0][20:30]) == []
    assert learnt.document("long", text(99, 5000)) == 250, "no document drives out all the others"


def test_a_reload_proposes_the_same(tmp_path: Path) -> None:
    learnt = WorkspaceNgrams(log(tmp_path))
    texts = [text(seed, 200) for seed in range(10)]
    for number, tokens in enumerate(texts):
        learnt.document(f"{number}", tokens)
    learnt.accepted(texts[0][:10], texts[5][:40])
    learnt.flush()
    again = WorkspaceNgrams(log(tmp_path))
    assert again.index.tokens == learnt.index.tokens
    for tokens in texts:
        for place in range(10, 190, 30):
            assert proposal(again, tokens[place - 4 : place]) == proposal(learnt, tokens[place - 4 : place])
    assert sum(again.document(f"{number}", tokens) for number, tokens in enumerate(texts)) == 0


def test_what_is_not_to_be_kept_stays_in_memory(tmp_path: Path) -> None:
    learnt, tokens = WorkspaceNgrams(log(tmp_path)), text(1)
    learnt.document("a", tokens, persist=False)
    learnt.accepted(tokens, text(2, 20), persist=False)
    learnt.flush()
    assert proposal(learnt, tokens[10:20]) == tokens[20:28]
    assert list(tmp_path.iterdir()) == []


def test_workspaces_and_languages_never_share(tmp_path: Path) -> None:
    store, tokens = NgramStore(VOCABULARY, tmp_path), text(1)
    here = Path("/work/here")
    store.of(here, "python").document("a", tokens)
    store.close()
    for _ in range(2):
        for place in ((Path("/work"), "python"), (here, "go"), (here / "inner", "python"), (None, "python")):
            assert proposal(store.of(*place), tokens[10:20]) == []
        assert proposal(store.of(here, "python"), tokens[10:20]) == tokens[20:28]
        store.close()
    other = NgramStore("ffff", tmp_path)
    assert proposal(other.of(here, "python"), tokens[10:20]) == [], "ids of another vocabulary are other words"


def test_few_are_open_and_nothing_is_lost(tmp_path: Path) -> None:
    store, tokens = NgramStore(VOCABULARY, tmp_path), text(1)
    for number in range(3 * MOST_OPEN):
        store.of(Path(f"/work/{number}"), "python").document("a", tokens)
        assert len(store) <= MOST_OPEN
    assert all(proposal(store.of(Path(f"/work/{n}"), "python"), tokens[10:20]) for n in range(3 * MOST_OPEN))


def test_forgetting(tmp_path: Path) -> None:
    store, tokens = NgramStore(VOCABULARY, tmp_path), text(1)
    here, there = Path("/work/here"), Path("/work/there")
    for folder in (here, there):
        store.of(folder, "python").document("a", tokens)
        store.of(folder, "python").flush()
    store.forget(here)
    store.forget(None)
    assert proposal(store.of(here, "python"), tokens[10:20]) == []
    assert not workspace_file(here, tmp_path).exists()
    assert proposal(store.of(there, "python"), tokens[10:20]) != []
    store.close()
    assert not workspace_file(here, tmp_path).exists()


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 50, 500])
def test_an_index_that_forgets_is_one_of_the_rest(kept: int) -> None:
    index, fresh, tokens = NgramIndex(), NgramIndex(), text(1) * 2
    index.extend(tokens)
    index.forget_oldest(kept)
    fresh.extend(tokens[len(tokens) - kept :])
    assert index.tokens == fresh.tokens
    for place in range(2, len(tokens)):
        assert index.places(tokens[:place]) == fresh.places(tokens[:place])


def test_what_stands_behind_the_cursor_is_no_guess() -> None:
    index, tokens = NgramIndex(), text(1)
    index.extend(tokens)
    draft = NgramDraft(index)
    assert draft.match(tokens[90:100]) is not None
    draft.following = tokens[100:108]
    assert draft.match(tokens[90:100]) is None
    assert draft.match(tokens[91:101]) is not None
    draft.following = tokens[100:102]
    assert draft.match(tokens[90:100]) is not None, "two tokens are too few to tell"


KEY = "-----BEGIN RSA " + "PRIVATE KEY-----"
BODY = "MIIEpAIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo" + "4lgOEePzNm0tRgeLezV6ffAt0gun"
RANDOM = "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vWxYz"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        *((path, "x = 1") for path in ("/w/.env", ".env.local", "prod.env", "C:\\w\\server.pem", "file:///w/site.KEY")),
        *((path, "") for path in ("id_rsa", "id_ed25519.pub", "a/credentials.json", "x.p12", ".npmrc", "~/.netrc")),
        ("a.py", f"KEY = '''{KEY}\n{BODY}'''"),
        ("a.py", "aws = 'AKIA" + "Q3JX7TM2ZRWPL5VN'"),
        ("a.py", f"call('{RANDOM}')"),
        ("a.py", f"call('{RANDOM[:14]}-{RANDOM[14:20]}_{RANDOM[20:]}')"),
        ("a.toml", 'db_password = "hunter2-hunter3x"'),
        ("a.json", '{"api_key": "0123456789abcdef0123456789abcdef"}'),
    ],
)
def test_secrets(path: str, content: str) -> None:
    assert is_secret(path, content)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", "token = next_token_of_the_text(tokens)\npassword = input('password, please: ')\n"),
        ("credentials.py", "def load(): ..."),
        ("keys.go", "package keys"),
        ("lock.json", '{"sha256": "' + "0123456789abcdef" * 4 + '"}'),
        ("a.ts", "import { VeryLongNameOfAComponentFactory2 } from 'src/components/factories/VeryLong2'"),
        ("a.toml", 'token = "${GITHUB_TOKEN}"'),
        ("environment.py", ""),
        ("models.py", "pull('ggml-org/Qwen3-Coder-30B-A3B-Instruct-Q8_0-GGUF')"),
    ],
)
def test_no_secrets(path: str, content: str) -> None:
    assert not is_secret(path, content)


def test_own_sources_hold_no_secrets() -> None:
    files = sorted(EMBEDDED_TARGET.parents[1].rglob("*.py"))
    assert [file.name for file in files if is_secret(str(file), file.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("workspace", "folder"),
    [
        ("", None),
        ("/a b/c", Path("/a b/c")),
        ("file:///a%20b/c", Path("/a b/c")),
        ("vscode-vfs://github/a/b", None),
        ("file://elsewhere/a", None),
    ],
)
def test_folders(workspace: str, folder: Path | None) -> None:
    assert folder_of(workspace) == folder


CODE = 'def total(prices, discount):\n    """What the customer pays."""\n    return sum(prices) * (1 - discount)\n\n\n'
NEW = 'def average(values, weights):\n    """The weighted mean."""\n    return sum(map(mul, values, weights))\n'


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    with drafting_engine(learnt_folder=tmp_path_factory.mktemp("learnt")) as engine:
        yield engine


def held(engine: LocalEngine, workspace: str, language: str = "python") -> str:
    """All that is in the index of a workspace."""
    learnt = engine.drafts.learnt.of(folder_of(workspace), language)
    pieces = (engine.vocabulary.token_bytes(t) if t != BREAK else b"|" for t in learnt.index.tokens)
    return b"".join(pieces).decode()


def test_the_line_that_is_edited_is_not_learnt(engine: LocalEngine) -> None:
    learner = WorkspaceLearner(engine.vocabulary, engine.drafts, engine.prompt_cache)
    learner.learn(CODE + "half a\n" + NEW, "a.py", "python", "/lines", len(CODE) + 3)
    assert held(engine, "/lines") == CODE + "|\n" + NEW
    learner.learn(CODE + "half a li\n" + NEW * 2, "a.py", "python", "/lines", len(CODE) + 3)
    assert held(engine, "/lines") == CODE + "|\n" + NEW, "not again so soon"
    learner.learn(CODE + "a line\n" + NEW, "a.py", "python", "/lines")
    assert "a line\n" in held(engine, "/lines"), "saved"


def test_completions_use_what_was_learnt_and_say_the_same(engine: LocalEngine) -> None:
    # Drawn text repeats itself less than greedy text, so that n-grams have little to go on at first.
    config = replace(Config(), max_tokens=40, time_budget_ms=0, draft="none", temperature=1.0, seed=3)
    completer = Completer(engine, config)
    request = Request("import os\n\n\ndef to", 18, "python", "b.py", workspace="/use")
    [before] = completer.complete(request)
    # All that was generated, since what is shown of it is often a few tokens only.
    written = [token for step in before.rounds for token in step.tokens]
    assert len(written) == 40
    completer.accepted(request, b"".join(map(engine.vocabulary.token_bytes, written)).decode())
    engine.drafts.forget_generated()  # that would know it all
    [after] = completer.complete(request)
    assert after.text == before.text
    assert _from_ngrams(after) > _from_ngrams(before)
    assert engine.drafts.ngrams.learnt is engine.drafts.learnt.of(Path("/use"), "python").index
    completer.complete(replace(request, workspace="/elsewhere"))
    assert engine.drafts.ngrams.learnt is not None
    assert engine.drafts.ngrams.learnt.tokens.tolist() == []
    Completer(engine, replace(config, learn=False)).complete(request)
    assert engine.drafts.ngrams.learnt is None
    completer.forget("/use")
    completer.complete(request)
    assert engine.drafts.ngrams.learnt.tokens.tolist() == []


def test_what_was_generated_is_drafted_again() -> None:
    request = Request("import os\n\n\ndef to", 18, "python", "b.py")
    with drafting_engine() as engine:
        completer = Completer(engine, replace(Config(), max_tokens=40, time_budget_ms=0, draft="none", learn=False))
        [first] = completer.complete(request)
        [again] = completer.complete(request)
        assert again.text == first.text
        # With the next key of it, too; and what was forgotten is generated as if for the first time.
        typed = request.text + first.text[:1]
        [further] = completer.complete(replace(request, text=typed, offset=len(typed)))
        completer.forget("")
        [anew] = completer.complete(request)
    calls = [each.report["target_calls"] for each in (first, again, further, anew)]
    assert max(calls[1:3]) < calls[0] / 2 < calls[3]


def _from_ngrams(completion: Completion) -> int:
    accepted: int = completion.report["by_source"]["ngram"]["accepted"]
    return accepted


def test_secrets_and_what_belongs_to_no_workspace_are_not_written(engine: LocalEngine) -> None:
    learner = WorkspaceLearner(engine.vocabulary, engine.drafts, engine.prompt_cache)
    base = engine.drafts.learnt._base
    assert base is not None
    before = set(base.rglob("*.sqlite"))
    learner.learn(CODE, "/w/.env", "dotenv", "/w")
    learner.learn(f"{KEY}\n{BODY}\n{CODE}", "/w/a.py", "python", "/w")
    learner.accepted(f"{KEY}\n{BODY}\n", CODE, "/w/a.py", "python", "/w")
    learner.learn(CODE, "/tmp/a.py", "python", "")
    assert set(base.rglob("*.sqlite")) == before
    assert CODE in held(engine, "")
    off = WorkspaceLearner(engine.vocabulary, engine.drafts, engine.prompt_cache, enabled=False)
    off.learn(CODE, "/off/a.py", "python", "/off")
    assert held(engine, "/off") == ""


def test_what_a_workspace_ignores_is_not_written(engine: LocalEngine, tmp_path: Path) -> None:
    learner, base = WorkspaceLearner(engine.vocabulary, engine.drafts, engine.prompt_cache), engine.drafts.learnt._base
    assert base is not None
    before = set(base.rglob("*.sqlite"))
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / ".codespecignore").write_text("own.py\n")
    for name in ("build/a.py", "own.py"):
        learner.learn(CODE, str(tmp_path / name), "python", str(tmp_path))
        learner.accepted("x = 1\n", NEW, str(tmp_path / name), "python", tmp_path.as_uri())
    assert set(base.rglob("*.sqlite")) == before
    assert CODE in held(engine, str(tmp_path))
    learner.learn(CODE.upper(), str(tmp_path / "a.py"), "python", str(tmp_path))
    assert len(set(base.rglob("*.sqlite"))) == len(before) + 1


def test_a_damaged_log_does_not_break_completing(engine: LocalEngine) -> None:
    path = workspace_file(Path("/damaged"), engine.drafts.learnt._base)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xff" * 1000)
    completer = Completer(engine, replace(Config(), max_tokens=8))
    request = Request(CODE + NEW[:20], len(CODE) + 20, "python", "a.py", workspace="/damaged")
    assert len(completer.complete(request)) == 1
    completer.learn(CODE + NEW, "a.py", "python", "/damaged")
    engine.drafts.learnt.close()
    assert CODE in held(engine, "/damaged")
    path.unlink()
    path.mkdir()  # not even a file
    engine.drafts.learnt.close()
    assert len(completer.complete(request)) == 1
    completer.learn(CODE + NEW, "a.py", "python", "/damaged")


def test_generating_from_a_prompt_uses_no_workspace(engine: LocalEngine) -> None:
    completer = Completer(engine, Config())
    completer.learn(CODE, "a.py", "python", "/w2")
    completer.complete(Request(CODE, 0, "python", workspace="/w2", max_tokens=1))
    assert engine.drafts.ngrams.learnt is not None
    next(completer.generate("x", limits=Limits(2)))
    assert engine.drafts.ngrams.learnt is None
