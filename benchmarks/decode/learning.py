"""``python -m benchmarks learning``: what n-grams gain from what a workspace taught, on text that a person wrote."""

from __future__ import annotations

import json
import keyword
import random
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import codespec
from benchmarks.decode.replay import ReplayTarget
from benchmarks.progress import progress
from codespec.completion.prompt.prompt import fim_prompt
from codespec.engine.combinations import SOURCES
from codespec.engine.local import LocalEngine
from codespec.languages import by_path
from codespec.models.fim import fim_format
from codespec.models.registry import EMBEDDED_TARGET, find_draft
from codespec.protocols import CodespecError, Limits, Sampling, Statistics, Target

TOKENS = 48
SPARE = 34  # rows of the context for proposals that run past the end
RENAMED = 0.15
"""Share of a file's names that an edit changes, all their occurrences with them."""
INSERTED = 0.06
"""Share of lines before which an edit puts a new one."""
_NAME = re.compile(r"(?<!\\)\b[a-z_]\w{3,}\b")  # behind a backslash it is none
_LONGEST_FILE = 100_000
_SOURCES = {"n-grams alone": frozenset({"ngram"}), "all drafts": SOURCES}


@dataclass(frozen=True)
class Pass:
    """One pass over the files: texts, in which folder what is learnt lies, and whether anything is."""

    name: str
    texts: Sequence[tuple[Path, str]]
    folder: Path
    learns: bool = True


def run(paths: list[Path], passes: int, positions: int, out: Path | None) -> int:
    """Measure, print a table, write ``learning.json`` under ``out``.

    The target writes what really stands at the cursor (see ``ReplayTarget``); every completion is then accepted, and
    every file learnt once it is done. Each pass is a session of its own that reads the log of the one before, with
    nothing known about acceptance: so what differs between passes is what was learnt.

    Raises:
        CodespecError: there is no file that is long enough.
    """
    texts = read(paths or [Path(codespec.__file__).parent])
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="codespec-learning-") as name:
        for sources, chosen in _SOURCES.items():
            for step in plan(texts, passes, Path(name) / sources.replace(" ", "-")):
                row = {"drafts": sources, "pass": step.name, **measure(step, positions, chosen)}
                rows.append(row)
                print(line(row) if len(rows) > 1 else f"{HEADER}\n{line(row)}", flush=True)
    report = {"files": len(texts), "positions": positions, "tokens": TOKENS, "renamed": RENAMED, "inserted": INSERTED}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "learning.json").write_text(json.dumps({**report, "passes": rows}, indent=1) + "\n", "utf-8")
    return 0


def read(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """The Python files among and under the paths that are long enough to complete in.

    Raises:
        CodespecError: there is none.
    """
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    texts = []
    for file in files:
        try:
            text = file.read_text("utf-8").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError) as error:
            raise CodespecError(f"{file}: cannot be read ({error})") from None
        if text.count("\n") > 30 and len(text) <= _LONGEST_FILE:
            texts.append((file, text))
    if not texts:
        raise CodespecError("no Python file of 30 lines or more; name other files or folders")
    return texts


def plan(texts: Sequence[tuple[Path, str]], passes: int, base: Path) -> list[Pass]:
    """The passes, in the order in which they must run; ``_start`` says where each gets what was learnt from."""
    edited = [[(path, edit(text, f"{path.name} {n}")) for path, text in texts] for n in range(2, passes + 1)]
    steps = [Pass("nothing learnt", texts, base / "nothing", learns=False), Pass("first", texts, base / "first")]
    if edited:
        steps.append(Pass("first, of the edited files", edited[0], base / "edited first"))
        steps.append(Pass("second, files as before", texts, base / "same"))
    for number, each in enumerate(edited, 2):
        steps.append(Pass(f"{_ordinal(number)}, files edited", each, base / f"edited {number}"))
    return steps


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")


def _start(step: Pass) -> None:
    """Give a pass what the pass before it has learnt."""
    base, name = step.folder.parent, step.folder.name
    number = int(name.split()[1]) if name.split()[1:] and name.split()[1].isdigit() else 2
    before = {"nothing": None, "first": None, "edited first": None}.get(
        name, "first" if number == 2 else f"edited {number - 1}"
    )
    if before is not None:
        shutil.copytree(base / before, step.folder)


def edit(text: str, seed: str) -> str:
    """A file as it may look after some work on it: some names changed, some lines put in. Still Python."""
    chooser = random.Random(seed)
    names = sorted(
        {name for name in _NAME.findall(text) if not keyword.iskeyword(name) and not keyword.issoftkeyword(name)}
    )
    renamed = {name: f"{chooser.choice(_WORDS)}_{name.strip('_')}" for name in names if chooser.random() < RENAMED}
    text = _NAME.sub(lambda match: renamed.get(match[0], match[0]), text)
    lines: list[str] = []
    quoted = False  # a line put into a long string would be no code
    for old in text.split("\n"):
        indent = re.match(r"( *)\w[^\"'(\[{\\]*$", old)
        if indent and not quoted and chooser.random() < INSERTED:
            word, other = chooser.sample(_WORDS, 2)
            lines.append(f"{indent[1]}# {word} {other} {chooser.randrange(100)}")
        quoted ^= old.count('"""') % 2 == 1
        lines.append(old)
    return "\n".join(lines)


_WORDS = [
    "inner",
    "outer",
    "next",
    "last",
    "whole",
    "partial",
    "local",
    "remote",
    "early",
    "late",
    "fast",
    "slow",
    "plain",
    "known",
    "other",
    "given",
]


def measure(step: Pass, positions: int, sources: frozenset[str]) -> dict[str, Any]:
    """Run one pass with a fresh engine and report its counts."""
    _start(step)
    targets: list[ReplayTarget] = []

    def wrap(sequence: Target, role: str) -> Target:
        if role != "target":
            return sequence
        targets.append(ReplayTarget(sequence))
        return targets[0]

    engine = LocalEngine(EMBEDDED_TARGET, learnt_folder=step.folder, wrap=wrap)
    total = Statistics()
    texts = 0
    say = progress()
    try:
        engine.drafts.combinations.sources = sources
        if "model" in sources:
            engine.drafts.choose(find_draft("auto", by_path("x.py")))
        session = _Session(engine, targets[0], step)
        for index, (path, text) in enumerate(step.texts):
            for prefix, suffix in cursors(text, positions, path.name):
                texts += session.complete(path, text, prefix, suffix, total)
            session.learn(path, text)
            say(f"{step.name}: {index + 1}/{len(step.texts)}")
        say("")
    finally:
        engine.close()
    return summarize(total, texts)


class _Session:
    """An editor's session on one engine."""

    def __init__(self, engine: LocalEngine, target: ReplayTarget, step: Pass) -> None:
        layout = fim_format(engine.model)
        assert layout is not None
        self.engine, self.target, self.layout, self.learns = engine, target, layout, step.learns
        self.workspace = step.folder.parent  # the same one for all passes
        self.sampling = Sampling(logit_bias={token: float("-inf") for token in engine.vocabulary.end_tokens})

    def complete(self, path: Path, text: str, start: int, end: int, total: Statistics) -> bool:
        """Let the target write ``text[start:end]``, count that in, and accept it; False where that is too short."""
        engine, vocabulary = self.engine, self.engine.vocabulary
        known = vocabulary.tokenize(text[start:end])[:TOKENS]
        if len(known) < TOKENS // 2:
            return False
        budget = engine.context_length - len(known) - SPARE
        prompt = fim_prompt(vocabulary, self.layout, text[:start], text[end:], path.name, budget)
        following = vocabulary.tokenize(text[end : end + 128])[:8]
        learnt = engine.drafts.learnt.of(self.workspace, "python")
        engine.drafts.use_learnt(learnt, following)
        self.target.text = (*prompt, *known)
        for _ in engine.generate(prompt, None, self.sampling, Limits(len(known)), language="python"):
            pass
        total.add(engine.statistics)
        if self.learns:
            learnt.accepted(vocabulary.tokenize(text[max(0, start - 256) : start]), known)
        return True

    def learn(self, path: Path, text: str) -> None:
        """The file is done."""
        if not self.learns:
            return
        learnt = self.engine.drafts.learnt.of(self.workspace, "python")
        learnt.document(str(path), self.engine.vocabulary.tokenize(text))
        learnt.flush()


def cursors(text: str, count: int, seed: str) -> list[tuple[int, int]]:
    """Places at lines' ends, the same for the same lines, and where the lines that are to be written there end."""
    chooser = random.Random(seed)
    ends = [match.start() for match in re.finditer(r"(?<=\S)\n", text)][3:-3]
    places = sorted(chooser.sample(range(len(ends)), min(count, len(ends))))
    found = []
    for place in places:
        start = ends[place]
        end = text.find("\n", min(len(text), start + 5 * TOKENS))
        found.append((start, len(text) if end < 0 else end))
    return found


def summarize(total: Statistics, texts: int) -> dict[str, Any]:
    """The figures of one pass; the passes that read the prompts do not count."""
    ngram = total.by_source["ngram"]
    calls = total.target_calls - texts
    return {
        "texts": texts,
        "tokens": total.tokens,
        "ngram_drafted": ngram.drafted,
        "ngram_accepted": ngram.accepted,
        "ngram_acceptance": round(ngram.accepted / max(1, ngram.drafted), 3),
        "ngram_share_of_text": round(ngram.accepted / max(1, total.tokens), 3),
        "accepted": total.accepted,
        "target_calls": calls,
        "tokens_per_call": round((total.tokens - texts) / max(1, calls), 3),
        "ms_per_token": round((total.total_ms - total.prefill_ms) / max(1, total.tokens), 3),
    }


HEADER = (
    "drafts        | pass                       | n-gram tokens drafted | accepted | of the text | tokens per call\n"
    "---           | ---                        | ---:                  | ---:     | ---:        | ---:"
)


def line(row: dict[str, Any]) -> str:
    """One line of the table."""
    return (
        f"{row['drafts']:13} | {row['pass']:26} | {row['ngram_drafted']:21,} | {row['ngram_acceptance']:8.1%} | "
        f"{row['ngram_share_of_text']:11.1%} | {row['tokens_per_call']:.2f}"
    )
