"""``python -m benchmarks typing``: what somebody sees who types in a real editor, by the author's text."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.decode.busy import SPIN, running
from benchmarks.progress import Say
from benchmarks.typing.passages import passages
from benchmarks.typing.typist import Record, Typist
from benchmarks.typing.verdicts import VERDICTS
from benchmarks.typing.windows import window


@dataclass(frozen=True)
class Plan:
    """What to type.

    Attributes:
        sources: files and folders; as of ``benchmarks infill --fetch``.
        pauses: in each language.
        busy: processes that compute beside it.
        show: how many pauses are printed.
    """

    sources: Sequence[Path]
    editor: str = "neovim"
    languages: Sequence[str] = ("python", "javascript")
    pauses: int = 200
    busy: int = 0
    seed: int = 1
    show: int = 0
    out: Path | None = None


def run(plan: Plan, settings: Mapping[str, Any], say: Say) -> int:
    """Type, print a table, write ``typing.json`` with every pause under ``plan.out``; 1 where a file came out wrong.

    Raises:
        CodespecError: the editor is missing, or there is nothing to type.
    """
    records: dict[str, Record] = {}
    with tempfile.TemporaryDirectory(prefix="codespec-typing-") as folder:
        pictures = plan.out or Path(folder)
        pictures.mkdir(parents=True, exist_ok=True)
        for language in plan.languages:
            found = passages(plan.sources, language, plan.seed)
            passage = next(found, None)  # before an editor is started for nothing
            with window(plan.editor, settings, pictures) as opened, running([(SPIN, 0)] * plan.busy):
                typist = Typist(opened, plan.seed, plan.pauses, lambda text, at=language: say(f"{at}: {text}"))  # type: ignore[misc]
                records[language] = typist.record
                for number in count(1):
                    if passage is None or typist.done:
                        break
                    typist.type(passage, f"typed{number}{passage.path.suffix}")
                    passage = next(found, None)
            say("")
    print(table(records))
    for language, record in records.items():
        for each in record.pauses[: plan.show]:
            print(f"\n{language}, {each.verdict}: {each.typed!r}\n- {each.wanted!r}\n+ {each.shown!r} {each.why}")
        for line in record.wrong:
            print(f"WRONG in {language}: {line}")
    if plan.out is not None:
        report = {"plan": {**asdict(plan), "sources": [*map(str, plan.sources)], "out": str(plan.out)}}
        report |= {"settings": dict(settings), "records": {name: asdict(each) for name, each in records.items()}}
        (plan.out / "typing.json").write_text(json.dumps(report, indent=1))
    return int(any(each.wrong for each in records.values()))


def table(records: Mapping[str, Record]) -> str:
    """The figures as a table in Markdown."""
    head = "| | pauses | shown | useless of it | acceptable | good | to ghost text | flicker in 400 keys | keys saved |"
    rows = [head, "|---" * 9 + "|"]
    for name, record in records.items():
        verdicts = Counter(each.verdict for each in record.pauses)
        total = len(record.pauses)
        shown = total - verdicts["nothing"]
        times = [each.after_ms for each in record.pauses if each.after_ms is not None]
        shares = [f"{verdicts[each] / max(shown, 1):.0%}" for each in VERDICTS[1:]]
        median = f"{statistics.median(times):.0f} ms" if times else "-"
        flicker = f"{len(record.flicker) * 400 / max(record.keys, 1):.1f}"
        saved = f"{record.saved / max(record.saved + record.keys, 1):.0%}"
        cells = (name, total, f"{shown / max(total, 1):.0%}", *shares, median, flicker, saved)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)
