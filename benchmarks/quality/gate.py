"""``python -m benchmarks gate``: is a file as well formed with a completion as without, at every kind of position.

A position is a place in a real file that is well formed: at the start of a line that is not blank, behind its
indentation, within it, at its end, or on a new line behind it, with the indentation that an editor gives it. Nothing is
taken out of the file. The settings are those of a new user, except that nothing is learnt and time is no limit, since
texts would depend on their order and on the machine, and that the context is ``CONTEXT``; with a time limit
(``--new-user``) they are all those of a new user. Programs and libraries that
share nothing with codespec judge (``judges``) whether the file with the text is well formed, and (``roles``) whether
what follows the cursor is still code, comment or string as before.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from benchmarks.progress import progress
from benchmarks.quality.bare_target import Prompted, is_there, said
from benchmarks.quality.judges import Judge, judge_of
from benchmarks.quality.roles import Roles, changed, roles_of
from codespec.completion.completer import Completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.engine.local import LocalEngine
from codespec.languages import Language, by_path
from codespec.models.registry import find_target
from codespec.protocols import CodespecError

SMALLEST, LARGEST = 200, 60_000
"""Bytes of a file."""
CONTEXT = 2048
"""Tokens, so that most of the time does not go into prompts."""
EXCERPT = 100
WRITE_EVERY = 50
"""Positions after which the report is written, also before the end."""
ONE_VALUE = frozenset({"json"})
"""Languages whose files are one value, before and behind which nothing can stand."""
KINDS = ("start", "indentation", "middle", "end", "new line")


@dataclass(frozen=True)
class Position:
    """A place in a file.

    Attributes:
        prefix, suffix: the document before and behind the cursor.
    """

    path: Path
    kind: str
    prefix: str
    suffix: str


@dataclass(frozen=True)
class Outcome:
    """What became of one position.

    Attributes:
        before, after: the end of the text before the cursor, and the beginning of what follows.
        raw: the first line of what the target alone says to the same prompt.
        complete: whether the cursor is before or behind all that the file can hold.
        new: whether what the target says is anything, can stand there, and is not what follows the cursor.
        errors: of the file with the text.
        changed: whether what follows the cursor is something else with the text.
    """

    path: str
    kind: str
    line: int
    before: str
    text: str
    after: str
    raw: str
    complete: bool
    new: bool
    errors: Sequence[str]
    changed: bool
    reason: str
    gate: str
    grammar: str
    ms: float
    grammar_ms: float


def run(paths: list[Path], languages: Sequence[str], count: int, seed: int, out: Path | None, config: Config) -> int:
    """Measure ``count`` positions of each kind in each language, print a table, write ``gate.json`` under ``out``.

    Raises:
        CodespecError: no files, or a judge is missing.
    """
    files = files_of(paths, languages)
    judges = {language: (judge_of(language), roles_of(language)) for language in files}
    target = config.target
    length = target.context or (CONTEXT if not config.time_budget_ms else 0)
    engine = LocalEngine(find_target(target.path), context_length=length, threads=target.set_threads)
    found: dict[str, list[Outcome]] = {}
    say = progress()
    try:
        prompted = Prompted(engine)
        completer = Completer(cast("LocalEngine", prompted), config)
        for language, of in files.items():
            judge, roles = judges[language]
            outcomes = found[language.id] = []
            for position in positions(of, judge, count, random.Random(f"{seed} {language.id}")):
                outcomes.append(_outcome(completer, prompted, language, position, judge, roles))
                say(f"{language.id}: {len(outcomes)}/{count * len(KINDS)} positions")
                if out is not None and len(outcomes) % WRITE_EVERY == 0:
                    _write(out, seed, config, found)
        say("")
    finally:
        engine.close()
    print(f"seed {seed}, grammar {config.grammar}, gate {config.gate}\n{table(found)}")
    if out is not None:
        _write(out, seed, config, found)
        print(f"wrote gate.json to {out}")
    return 0


def _write(out: Path, seed: int, config: Config, found: dict[str, list[Outcome]]) -> None:
    languages = {
        name: {
            "figures": {kind: figures(of) for kind, of in by_kind(outcomes).items()},
            "bad": [asdict(each) for each in outcomes if each.errors or each.changed],
            "empty": [asdict(each) for each in outcomes if each.new and not each.text.strip()],
            "texts": [asdict(each) for each in outcomes if each.text.strip()][:: max(1, len(outcomes) // 40)],
        }
        for name, outcomes in found.items()
    }
    report = {"seed": seed, "grammar": config.grammar, "gate": config.gate, "languages": languages}
    out.mkdir(parents=True, exist_ok=True)
    (out / "gate.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def files_of(paths: Iterable[Path], languages: Sequence[str]) -> dict[Language, list[Path]]:
    """The files under ``paths`` by language; where ``languages`` names some, only theirs.

    Raises:
        CodespecError: there are none.
    """
    found: dict[Language, list[Path]] = {}
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            language = by_path(file.name)
            # Declarations alone (`.d.ts`) are written by programs.
            if (
                language.id in languages
                and ".d." not in file.name
                and file.is_file()
                and SMALLEST <= file.stat().st_size <= LARGEST
            ):
                found.setdefault(language, []).append(file)
    missing = set(languages) - {language.id for language in found}
    found = dict(sorted(found.items(), key=lambda item: languages.index(item[0].id)))
    if missing:
        raise CodespecError(f"no files of {SMALLEST} to {LARGEST:,} bytes in {', '.join(sorted(missing))}")
    return found


def positions(files: Sequence[Path], judge: Judge, count: int, chooser: random.Random) -> Iterator[Position]:
    """``count`` positions of each kind, one of each kind in a file at a time, in random files that are well formed.

    Raises:
        CodespecError: hardly any of the files can be used.
    """
    given = dict.fromkeys(KINDS, 0)
    misses = 0
    while min(given.values()) < count:
        path = chooser.choice(files)
        text = _read(path)
        if text is None or judge(text, path):
            misses += 1
            if misses > 20 * (count + 50):
                raise CodespecError(f"hardly any file such as {path} is well formed")
            continue
        for kind in KINDS:
            found = position_in(path, text, kind, chooser) if given[kind] < count else None
            if found is not None and not judge(found.prefix + found.suffix, path):
                given[kind] += 1
                yield found


def _read(path: Path) -> str | None:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n")
    return text if text.strip() and "\r" not in text and "\0" not in text else None


def position_in(path: Path, text: str, kind: str, chooser: random.Random) -> Position | None:
    """A random position of a kind; None where the file has none."""
    lines = text.split("\n")
    rows = [row for row, line in enumerate(lines) if _fits(line, kind)]
    if not rows:
        return None
    row = chooser.choice(rows)
    line, start = lines[row], sum(len(each) + 1 for each in lines[:row])
    indentation = len(line) - len(line.lstrip())
    column = {
        "start": 0,
        "indentation": indentation,
        "middle": chooser.randrange(indentation + 1, max(indentation + 2, len(line.rstrip()))),
    }.get(kind, len(line))
    prefix, suffix = text[: start + column], text[start + column :]
    if kind == "new line":
        step = "\t" if line[:1] == "\t" or "\n\t" in text else "    " if "\n    " in text else "  "
        prefix += "\n" + line[:indentation] + (step if line.rstrip().endswith(("{", ":", "(", "[")) else "")
    return Position(path, kind, prefix, suffix)


def _fits(line: str, kind: str) -> bool:
    text = line.strip()
    return (
        len(text) > 1
        if kind == "middle"
        else line[:1].isspace() and bool(text)
        if kind == "indentation"
        else bool(text)
    )


def _outcome(
    completer: Completer, prompted: Prompted, language: Language, position: Position, judge: Judge, roles: Roles
) -> Outcome:
    prefix, suffix = position.prefix, position.suffix
    prompted.prompt = None
    began = perf_counter()
    # Every position is a new version of one document, as an editor would send it.
    completion = completer.complete(Request(prefix + suffix, len(prefix), language.id, str(position.path)))[0]
    ms = (perf_counter() - began) * 1e3
    text, report = completion.text, completion.report
    lead = prefix[len(prefix) - completion.backed_up :]
    shown, raw = bool(text.strip()), said(prompted, lead)
    complete = language.id in ONE_VALUE and not (prefix.strip() and suffix.strip())
    return Outcome(
        path=str(position.path),
        kind=position.kind,
        line=prefix.count("\n") + 1,
        before=prefix[-EXCERPT:],
        text=text,
        after=suffix[:EXCERPT],
        raw=raw,
        complete=complete,
        new=bool(raw) and not complete and not is_there(raw, suffix, prefix),
        errors=judge(prefix + text + suffix, position.path) if shown else (),
        changed=shown and changed(roles, prefix, text, suffix),
        reason=completion.finish_reason,
        gate=report["gate"],
        grammar=report["grammar"],
        ms=round(ms, 2),
        grammar_ms=report["timings_ms"]["grammar"],
    )


def by_kind(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Those of each kind, and all."""
    return {**{kind: [each for each in outcomes if each.kind == kind] for kind in KINDS}, "all": list(outcomes)}


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts, shares and medians."""
    shown = [each for each in outcomes if each.text.strip()]
    raw, new = [each for each in outcomes if each.raw], [each for each in outcomes if each.new]
    worse = sum(bool(each.errors) for each in shown)
    return {
        "positions": len(outcomes),
        "file_complete": sum(each.complete for each in outcomes),
        "target_has_text": len(raw),
        "target_has_new_text": len(new),
        "shown": len(shown),
        "shown_where_target_has_text": _share(sum(bool(each.text.strip()) for each in raw), len(raw)),
        "shown_where_target_has_new_text": _share(sum(bool(each.text.strip()) for each in new), len(new)),
        "worse": worse,
        "worse_share": _share(worse, len(shown)),
        "changed": sum(each.changed for each in shown),
        "median_ms": round(statistics.median(each.ms for each in outcomes), 1) if outcomes else None,
        "median_grammar_ms": round(statistics.median(each.grammar_ms for each in outcomes), 1) if outcomes else None,
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def table(found: dict[str, list[Outcome]]) -> str:
    """Markdown: a row for each language and kind."""
    head = [
        "language",
        "cursor",
        "positions",
        "of those before or behind a complete file",
        "shown",
        "where the target says anything new",
        "worse",
        "",
        "changed",
    ]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name, outcomes in found.items():
        for kind, of in by_kind(outcomes).items():
            each = figures(of)
            shares = [_percent(each["shown_where_target_has_new_text"], 1), _percent(each["worse_share"], 2)]
            counts = [each["positions"], each["file_complete"], each["shown"]]
            cells = [name, kind, *counts, shares[0], each["worse"], shares[1], each["changed"]]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _percent(share: float | None, digits: int) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"
