"""``python -m benchmarks renames``: renames in real files are begun at one place; judges say which offers are right."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from benchmarks.progress import Say
from benchmarks.renames.judges import GoJudge, Judge, Judged, PythonJudge, Rename, TypeScriptJudge
from codespec.edits.difference import Hunk
from codespec.edits.history import EditHistory
from codespec.edits.renames import renames_another, rest_of_rename
from codespec.edits.request import EditRequest
from codespec.edits.windows import Window
from codespec.languages import by_path
from codespec.protocols import CodespecError

LARGEST = 120_000
"""Characters of a file that renames are begun in."""
MOST_CHANGES = 40
"""Places where a model's change is judged, of one rename."""
TRIES = 40
"""Words of a file that are tried."""
FRESH = 0.7
"""Share of the new names that stand nowhere in the file; the others do."""
SUFFIXES = {
    "python": (".py",), "javascript": (".js", ".mjs", ".cjs", ".jsx"), "typescript": (".ts", ".tsx"), "go": (".go",),
}  # fmt: skip

_WORD = re.compile(r"(?<![\w$])[^\W\d]\w*(?![\w$])")


def begin(path: Path, text: str, judge: Judge, chooser: random.Random) -> Rename | None:
    """A rename of something that has other uses in a file; None where none was found."""
    words = [each for each in _WORD.finditer(text) if each[0] not in ("this", "super")]
    if not words:
        return None
    for _ in range(TRIES):
        word = chooser.choice(words)
        old = word[0]
        new = f"{old}_new" if chooser.random() < FRESH else chooser.choice(words)[0]
        rename = Rename(path, text, word.start(), old, new)
        if new != old and judge.uses(rename):
            return rename
    return None


def offered(rename: Rename) -> dict[int, str]:
    """What is offered: by the place of a name in the text before the rename, what is to stand there."""
    return dict(_place(rename, each) for each in rest_of_rename(_request(rename)))


def let_pass(rename: Rename, chooser: random.Random) -> set[int]:
    """Where a model's change that goes on with the rename would be shown, of ``MOST_CHANGES`` words of that name, as
    places in the text before the rename."""
    request, length = _request(rename), len(rename.old)
    window = Window(request.path, request.language, request.text, 0, 0, len(request.text))
    found = [each.start() for each in _WORD.finditer(request.text) if each[0] == rename.old]
    found = chooser.sample(found, min(MOST_CHANGES, len(found)))
    changes = [Hunk(at, at + length, rename.new) for at in found]
    return {_place(rename, each)[0] for each in changes if not renames_another(request, window, [each])}


def _request(rename: Rename) -> EditRequest:
    history, path, begun = EditHistory(), str(rename.path), rename.begun
    history.opened(path, rename.text)
    history.changed(path, begun, now=1.0)
    return EditRequest(path, by_path(path).id, begun, rename.place + len(rename.new), history.recent())


def _place(rename: Rename, change: Hunk) -> tuple[int, str]:
    begun, length = rename.begun, len(rename.old)
    start, text = change.start, change.text
    if change.start == change.end:  # beside a name that stays
        behind = begun.startswith(rename.old, start)
        start = start if behind else start - length
        text = text + rename.old if behind else rename.old + text
    elif begun[start : change.end] != rename.old:
        raise ValueError(f"{rename.path}: {change} is no use of {rename.old}")
    return start if start < rename.place else start - len(rename.new) + length, text


def files_of(paths: Sequence[Path], language: str, chooser: random.Random) -> Iterator[Path]:
    """The files of a language, in any order, one of each folder of ``paths`` in turn."""
    folders = sorted(inner for path in paths for inner in (path.iterdir() if path.is_dir() else [path]))
    lists = []
    for folder in folders:
        files = sorted(each for each in folder.rglob("*") if _is_of(each, language)) if folder.is_dir() else [folder]
        chooser.shuffle(files)
        lists.append(files)
    chooser.shuffle(lists)
    while lists:
        yield from (each.pop() for each in lists if each)
        lists = [each for each in lists if each]


def _is_of(path: Path, language: str) -> bool:
    return path.suffix in SUFFIXES[language] and not path.name.endswith((".min.js", ".d.ts")) and path.is_file()


def run(paths: Sequence[Path], languages: Sequence[str], count: int, seed: int, out: Path | None, say: Say) -> int:
    """Begin ``count`` renames in each language, and print what the judges say. Returns 1 where anything was wrong.

    Raises:
        CodespecError: a judge is missing.
    """
    found: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for language in languages:
            with closing(judge_of(language, Path(folder))) as judge:
                found += _judged(paths, language, count, random.Random(f"{seed} {language}"), judge, say)
    say("")
    if out is not None:
        out.write_text("".join(json.dumps(each) + "\n" for each in found), "utf-8")
    for line in report(found):
        print(line)
    return int(any(each["wrong"] or each["captured"] or each["of_others"] for each in found))


def _judged(
    paths: Sequence[Path], language: str, count: int, chooser: random.Random, judge: Judge, say: Say
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for path in files_of(paths, language, chooser):
        if len(rows) == count:
            break
        with suppress(OSError, UnicodeDecodeError):
            text = path.read_text("utf-8")
            rename = begin(path, text, judge, chooser) if len(text) <= LARGEST else None
            if rename is not None:
                rows.append(_row(language, rename, judge))
                say(f"{language}: {len(rows)}/{count}")
    return rows


def judge_of(language: str, folder: Path) -> Judge:
    """The judge of a language; ``folder`` holds what it builds.

    Raises:
        CodespecError: there is none, or it needs a program that is missing.
    """
    if language == "go":
        return GoJudge(folder)
    if language not in SUFFIXES:
        raise CodespecError(f"nothing judges renames of {language}; there are judges of {', '.join(SUFFIXES)}")
    return PythonJudge() if language == "python" else TypeScriptJudge()


def _row(language: str, rename: Rename, judge: Judge) -> dict[str, object]:
    places = offered(rename)
    passed = let_pass(rename, random.Random(rename.place))
    judged = judge.judged(rename, places) if places else Judged(0, judge.uses(rename))
    return {
        "language": language,
        "path": str(rename.path),
        "line": rename.text.count("\n", 0, rename.place) + 1,
        "place": rename.place,
        "old": rename.old,
        "new": rename.new,
        "fresh": rename.new == f"{rename.old}_new",
        "due": judge.uses(rename),
        "offered": len(places),
        "wrong": judged.wrong,
        "missed": judged.missed,
        "captured": judged.captured,
        "passed": len(passed),
        "of_others": judge.of_others(rename, passed) if passed else 0,
    }


def report(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    """A table: what is offered, what changes of a model would be let pass, and how many of them are of other variables;
    of renames to names that are new in their file, how many places are found, too."""
    yield (
        "| | renames | with an offer | wrong | captured | let pass | of other variables | to a new name | whole "
        "| places due | offered |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for language in dict.fromkeys(str(each["language"]) for each in rows):
        of = [each for each in rows if each["language"] == language]
        fresh = [each for each in of if each["fresh"]]
        sums: Counter[str] = Counter()
        for each in fresh:
            sums.update({name: int(str(each[name])) for name in ("due", "missed")})
        cells = [
            language, len(of), sum(bool(each["offered"]) for each in of), sum(bool(each["wrong"]) for each in of),
            sum(bool(each["captured"]) for each in of), sum(int(str(each["passed"])) for each in of),
            sum(int(str(each["of_others"])) for each in of), len(fresh), sum(not each["missed"] for each in fresh),
            sums["due"], sums["due"] - sums["missed"],
        ]  # fmt: skip
        yield "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells) + " |"
