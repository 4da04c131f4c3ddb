"""``codespec bench gate``: do completions leave a file that parses, with the suffix gate and without.

A cut is a real file with a piece taken out. The cursor is, with equal odds, at a random character of a random line
that is not blank (behind its indentation), or at the end of a random line, blank ones included. What is taken out is,
with equal odds, nothing, the rest of the line, or that and one, two or three further lines with their line breaks.
Files have 50 bytes to 150 KB; those that the parsers of Python and JSON refuse are passed over. The completer sees what
is left (the model at most 2,048 tokens of it), and a whole-file parser judges the file with the completion in the gap.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from codespec.bench.progress import progress
from codespec.completion.completer import Completer
from codespec.completion.local import LocalEngine
from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.languages import Language, by_id
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError
from codespec.syntax import syntax_tree, well_formed

LARGEST_FILE = 150_000
"""Bytes."""
CUTS_PER_FILE = 5
CONTEXT = 2048
"""Tokens, so that most of the time does not go into prompts."""
MODES = ("window", "off")

Judge = Callable[[str], int]
"""How many errors a text has; Python's and JSON's parsers stop at the first."""


@dataclass(frozen=True)
class Cut:
    """A file with a gap.

    Attributes:
        kind: where the cursor is and what was taken out, such as ``inside, rest of line and 2 lines``.
    """

    path: Path
    prefix: str
    middle: str
    suffix: str
    kind: str


@dataclass(frozen=True)
class Outcome:
    """What became of one cut in one mode."""

    path: str
    line: int
    kind: str
    text: str
    middle: str
    reason: str
    gate: str
    grammar: str
    good: bool
    total_ms: float
    grammar_ms: float
    wall_ms: float


def run(
    language: str,
    paths: list[Path],
    cuts: int,
    seed: int,
    out: Path | None,
    grammar: bool = True,
    max_tokens: int = 48,
) -> int:
    """Measure both ways on the same cuts, print a table, write ``gate-LANGUAGE.json`` and ``.md`` under ``out``.

    Raises:
        CodespecError: no parser to judge by, or no files.
    """
    known = by_id(language)
    judge = judge_of(known)
    config = replace(
        Config(), max_tokens=max_tokens, time_budget_ms=0, grammar="auto" if grammar else "none", language={}
    )
    # One thread: two would wait for each other wherever something else runs, and times are no more than a side result.
    engine = LocalEngine(EMBEDDED_TARGET, context_length=CONTEXT, threads=1)
    outcomes: dict[str, list[Outcome]] = {mode: [] for mode in MODES}
    say = progress()
    try:
        completers = {mode: Completer(engine, replace(config, gate=mode)) for mode in MODES}
        for index, cut in enumerate(cuts_of(files_of(known, paths), judge, cuts, random.Random(seed))):
            # The second of the two finds the prompt in the KV cache, so they take turns.
            for mode in MODES if index % 2 else MODES[::-1]:
                outcomes[mode].append(_outcome(completers[mode], known, cut, judge))
            say(f"{index + 1}/{cuts} cuts")
        say("")
    finally:
        engine.close()
    summary: dict[str, Any] = {
        "language": language,
        "cuts": len(outcomes["off"]),
        "seed": seed,
        "max_tokens": max_tokens,
        "grammar": (known.grammar or "none") if grammar else "none",
        **{_name(mode): summarize(outcomes[mode]) for mode in MODES},
    }
    summary["non_empty_ratio"] = _share(summary["gate"]["non_empty"], summary["no_gate"]["non_empty"])
    _write(summary, outcomes, out)
    return 0


def files_of(language: Language, paths: list[Path]) -> list[Path]:
    """The files of a language under ``paths``.

    Raises:
        CodespecError: there are none.
    """
    found = [path for each in paths for path in (sorted(each.rglob("*")) if each.is_dir() else [each])]
    files = [path for path in found if path.suffix.lower() in language.suffixes and path.is_file()]
    if not files:
        raise CodespecError(f"no {language.id} files ({', '.join(language.suffixes)}) in what was named; name others")
    return files


def cuts_of(files: list[Path], judge: Judge, count: int, chooser: random.Random) -> Iterator[Cut]:
    """``count`` random cuts, a few in each of randomly chosen files.

    Python and JSON files that do not parse are passed over, since their parsers cannot count errors.

    Raises:
        CodespecError: hardly any of the files can be used.
    """
    given = misses = 0
    while given < count:
        path = chooser.choice(files)
        text = _read(path)
        if text is None or judge(text) < 0:
            misses += 1
            if misses > 20 * (count + 50):
                raise CodespecError(
                    "hardly any of these files can be used; name files of 50 bytes to 150 KB that parse"
                )
            continue
        for _ in range(min(CUTS_PER_FILE, count - given)):
            yield cut_at_random(path, text, chooser)
            given += 1


def _read(path: Path) -> str | None:
    if not 50 <= path.stat().st_size <= LARGEST_FILE:
        return None
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n")
    return text if text.strip() and "\r" not in text and "\0" not in text else None


def cut_at_random(path: Path, text: str, chooser: random.Random) -> Cut:
    """As the module's documentation says."""
    lines = text.split("\n")
    inside = chooser.random() < 0.5
    if inside:
        row = chooser.choice([index for index, line in enumerate(lines) if line.strip()])
        line = lines[row]
        column = chooser.randrange(len(line) - len(line.lstrip()), len(line.rstrip()))
    else:
        row = chooser.randrange(len(lines))
        column = len(lines[row])
    more = chooser.choice((None, 0, 1, 2, 3))
    start = sum(len(line) + 1 for line in lines[:row]) + column
    last = min(row + (more or 0), len(lines) - 1)
    end = start if more is None else sum(len(line) + 1 for line in lines[: last + 1]) - 1
    what = "nothing" if more is None else "rest of line" + (f" and {more} lines" if more else "")
    kind = f"{'inside' if inside else 'line end'}, {what}"
    return Cut(path, text[:start], text[start:end], text[end:], kind)


def judge_of(language: Language) -> Judge:
    """Python's ``ast``, ``json``, or tree-sitter's count of ERROR and MISSING nodes.

    Raises:
        CodespecError: no parser for this language is installed.
    """
    if language.id in ("python", "json"):
        return lambda text: 0 if well_formed(language, text) else -1
    if syntax_tree(language, "") is None:
        raise CodespecError(f"no parser to judge {language.id} by; pip install 'codespec[syntax]', or take another")

    def judge(text: str) -> int:
        tree = syntax_tree(language, text)
        return tree.problems.count if tree is not None else -1

    return judge


def _outcome(completer: Completer, language: Language, cut: Cut, judge: Judge) -> Outcome:
    began = perf_counter()
    # Every cut is a new version of one document, as an editor would send it.
    request = Request(cut.prefix + cut.suffix, len(cut.prefix), language.id, str(cut.path))
    completion: Completion = completer.complete(request)[0]
    wall_ms = (perf_counter() - began) * 1e3
    before, after = judge(cut.prefix + cut.middle + cut.suffix), judge(cut.prefix + completion.text + cut.suffix)
    report = completion.report
    return Outcome(
        path=str(cut.path),
        line=cut.prefix.count("\n") + 1,
        kind=cut.kind,
        text=completion.text,
        middle=cut.middle,
        reason=completion.finish_reason,
        gate=report["gate"],
        grammar=report["grammar"],
        good=0 <= after <= before,
        total_ms=report["timings_ms"]["total"],
        grammar_ms=report["timings_ms"]["grammar"],
        wall_ms=wall_ms,
    )


def summarize(outcomes: list[Outcome]) -> dict[str, Any]:
    """Counts and medians of one mode."""
    stops = [each for each in outcomes if each.reason == "stop"]
    filled = [each for each in outcomes if each.text.strip()]
    return {
        "stops": len(stops),
        "stops_good_percent": _percent(each.good for each in stops),
        "non_empty_stops_good_percent": _percent(each.good for each in stops if each.text.strip()),
        "non_empty": len(filled),
        "non_empty_good_percent": _percent(each.good for each in filled),
        "all_good_percent": _percent(each.good for each in outcomes),
        "median_ms": round(statistics.median(each.total_ms for each in outcomes), 1),
        "median_wall_ms": round(statistics.median(each.wall_ms for each in outcomes), 1),
        "median_grammar_ms": round(statistics.median(each.grammar_ms for each in outcomes), 2),
        "gate": _count(each.gate for each in outcomes),
        "grammar": _count(
            "from a block" if "(from" in each.grammar else each.grammar.split(" (")[0] for each in outcomes
        ),
    }


def _count(values: Iterable[str]) -> dict[str, int]:
    listed = list(values)
    return {value: listed.count(value) for value in sorted(set(listed))}


def _percent(values: Iterable[bool]) -> float:
    listed = list(values)
    return round(100 * sum(listed) / len(listed), 2) if listed else 100.0


def _share(part: int, whole: int) -> float:
    return round(part / whole, 3) if whole else 1.0


def _name(mode: str) -> str:
    return "no_gate" if mode == "off" else "gate"


def table(summary: dict[str, Any]) -> str:
    """Markdown."""
    rows = [
        ("completions that finish with stop", "stops"),
        ("of those leave a file as good (%)", "stops_good_percent"),
        ("of those that are not empty (%)", "non_empty_stops_good_percent"),
        ("completions that are not empty", "non_empty"),
        ("of those leave a file as good (%)", "non_empty_good_percent"),
        ("median time (ms)", "median_ms"),
        ("median time in grammar and gate (ms)", "median_grammar_ms"),
    ]
    head = f"| {summary['language']}, {summary['cuts']} cuts, grammar {summary['grammar']} | with gate | without |"
    lines = [head, "|---|---|---|"]
    lines += [f"| {title} | {summary['gate'][key]} | {summary['no_gate'][key]} |" for title, key in rows]
    lines.append(f"| not empty, relative to no gate | {summary['non_empty_ratio']} | 1 |")
    return "\n".join(lines)


def _write(summary: dict[str, Any], outcomes: dict[str, list[Outcome]], out: Path | None) -> None:
    print(table(summary))
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    name = f"gate-{summary['language']}" + ("" if summary["grammar"] != "none" else "-no-grammar")
    bad = [asdict(each) for each in outcomes["window"] if each.reason == "stop" and not each.good]
    dropped = [asdict(each) for each in outcomes["window"] if not each.text.strip()]
    content = {**summary, "bad_stops": bad, "empty": dropped}
    (out / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    (out / f"{name}.md").write_text(table(summary) + "\n", "utf-8")
