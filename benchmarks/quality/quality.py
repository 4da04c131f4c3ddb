"""``python -m benchmarks quality``: what completions are worth, on requests of typed sessions.

A session is an insertion from the history of a git repository, or a run of lines of a file, that is being typed into
the text around it; requests come at a few random keys of each. Every request goes to a completer with the settings as
they are, and what the target says to the same prompt, with neither rules nor gate, tells whether there was anything to
say at all. Judged is: whether a text came, whether it repeats the line behind the cursor, and the errors that programs
which share nothing with codespec (``judges``) find with the text, beside those of the document without it and those of
the file as its author left it.
"""

from __future__ import annotations

import json
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from benchmarks.capacity.sessions import LONGEST, SHORTEST
from benchmarks.latency.typing import Session, sessions
from benchmarks.quality.bare_target import Prompted, said
from benchmarks.quality.judges import JUDGED, Judge, judge_of
from codespec.completion.completer import Completer
from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.engine.local import LocalEngine
from codespec.languages import Language, by_path
from codespec.models.registry import find_target
from codespec.protocols import CodespecError

PER_SESSION = 5  # requests
LARGEST_FILE = 100_000  # bytes
SHORT = 2
"""Characters of a line that may be there twice, such as a closing bracket."""
KEPT_FAILURES = 200  # of each kind, in the report
EXCERPT = 200  # characters around the cursor in what is shown


@dataclass(frozen=True)
class Outcome:
    """What became of one request.

    Attributes:
        before, after: the end of the text before the cursor, and the beginning of what follows.
        wanted: the beginning of what its author wrote there.
        raw: whether the target says anything at all to the prompt.
        duplicate: whether the text repeats the line behind the cursor; ``authors`` is the same of what was written.
        errors: with the text; -1 where nothing judges the language.
        document_errors, finished_errors: of the document without the text, and of the finished file.
    """

    path: str
    language: str
    line: int
    before: str
    after: str
    wanted: str
    text: str
    reason: str
    gate: str
    raw: bool
    duplicate: bool
    authors: bool
    errors: int
    document_errors: int
    finished_errors: int
    ms: float


def run(
    paths: Sequence[Path],
    requests: int,
    seed: int,
    out: Path | None,
    config: Config,
    say: Callable[[str], None],
    shown: int = 0,
) -> int:
    """Measure, print a summary and ``shown`` examples of each failure, write ``quality.json`` under ``out``.

    Raises:
        CodespecError: nothing to type in ``paths``, or the target cannot be loaded.
    """
    chooser = random.Random(seed)
    chosen = typed_sessions(paths, -(-requests // PER_SESSION), chooser)
    judges = {session.language.id: _judge_of(session.language) for session in chosen}
    target = config.target
    engine = LocalEngine(
        find_target(target.path),
        context_length=target.context,
        threads=target.set_threads,
        gpu_layers=target.set_gpu_layers,
        kv_type=target.kv_type,
        flash_attention=target.flash_attention,
    )
    outcomes: list[Outcome] = []
    began = perf_counter()
    try:
        prompted = Prompted(engine)
        completer = Completer(cast("LocalEngine", prompted), config)
        for number, session in enumerate(chosen):
            for count in places(session, min(PER_SESSION, requests - len(outcomes)), chooser):
                judged = judges[session.language.id]
                outcomes.append(judge(completer, prompted, session, number, count, judged))
                left = (perf_counter() - began) / len(outcomes) * (requests - len(outcomes))
                say(f"{len(outcomes)}/{requests} requests, {left:.0f} s left")
        say("")
    finally:
        engine.close()
    found = {"requests": len(outcomes), "seed": seed, "paths": [str(path) for path in paths], **figures(outcomes)}
    print(summary(found))
    for kind, of in failures(outcomes).items():
        for outcome in of[:shown]:
            print(f"\n{kind}: {_show(outcome)}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        listed = {kind: [asdict(each) for each in of[:KEPT_FAILURES]] for kind, of in failures(outcomes).items()}
        (out / "quality.json").write_text(json.dumps({**found, "failures": listed}, indent=1) + "\n", "utf-8")
        print(f"wrote quality.json to {out}")
    return 0


def _judge_of(language: Language) -> Judge | None:
    """What counts the errors of files; None where nothing is known that does.

    Raises:
        CodespecError: a program that would is missing.
    """
    return judge_of(language) if language.id in JUDGED else None


def typed_sessions(paths: Sequence[Path], count: int, chooser: random.Random) -> list[Session]:
    """Sessions from repositories (folders with ``.git``) and from files, in equal parts, in random order.

    Raises:
        CodespecError: there is nothing to type.
    """
    repositories = [path for path in paths if (path / ".git").exists()]
    others = [path for path in paths if path not in repositories]
    shares = len(repositories) + bool(others)
    if not shares:
        raise CodespecError("name repositories, folders or files to take sessions from")
    share = -(-count // shares)
    found = [session for each in repositories for session in sessions(each, share, chooser.randrange(2**31))]
    if others:
        found += from_files(files_of(others), share, chooser)
    chooser.shuffle(found)
    return found[:count]


def files_of(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The files under ``paths`` that are in a language with a parser, by language.

    Raises:
        CodespecError: there are none.
    """
    found: dict[str, list[Path]] = {}
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            language = by_path(file.name)
            if language.parser and file.is_file() and SHORTEST <= file.stat().st_size <= LARGEST_FILE:
                found.setdefault(language.id, []).append(file)
    if not found:
        raise CodespecError(f"no files of {SHORTEST} to {LARGEST_FILE:,} bytes in a language that is known")
    return found


def from_files(files: dict[str, list[Path]], count: int, chooser: random.Random) -> list[Session]:
    """Runs of lines of random files as if they were being typed, languages in turn.

    Raises:
        CodespecError: hardly any of the files can be used.
    """
    found: list[Session] = []
    languages = sorted(files)
    for attempt in range(50 * count + 100):
        if len(found) == count:
            return found
        path = chooser.choice(files[languages[attempt % len(languages)]])
        session = from_file(path, chooser)
        if session is not None:
            found.append(session)
    raise CodespecError(f"hardly any of these files has lines of {SHORTEST} to {LONGEST} characters; name others")


def from_file(path: Path, chooser: random.Random) -> Session | None:
    """A random run of lines; None where it is too short or too long, or the file is no text."""
    try:
        text = path.read_bytes().decode().replace("\r\n", "\n")
    except (UnicodeDecodeError, OSError):
        return None
    lines = text.splitlines(keepends=True)
    start = chooser.randrange(max(1, len(lines)))
    typed, end = "", start
    wanted = chooser.randint(SHORTEST, LONGEST)
    while end < len(lines) and len(typed) < wanted:
        typed += lines[end]
        end += 1
    typed = typed.removesuffix("\n")
    if "\r" in text or not SHORTEST <= len(typed) <= 2 * LONGEST:
        return None
    before = "".join(lines[:start])
    return Session(str(path), by_path(path.name), before, typed, text[len(before) + len(typed) :])


def places(session: Session, count: int, chooser: random.Random) -> list[int]:
    """How many characters were typed at each of ``count`` random keys, ascending."""
    ends, length = [], 0
    for key in session.key_presses():
        length += len(key)
        ends.append(length)
    return sorted(chooser.sample(ends, min(count, len(ends))))


def judge(
    completer: Completer, prompted: Prompted, session: Session, number: int, count: int, judged: Judge | None
) -> Outcome:
    """Complete behind ``count`` typed characters; ``judged`` counts the errors of a file."""
    prefix, suffix = session.before + session.typed[:count], session.after
    request = Request(prefix + suffix, len(prefix), session.language.id, f"{number}/{session.path}")
    prompted.prompt = None
    began = perf_counter()
    completion: Completion = completer.complete(request)[0]
    ms = (perf_counter() - began) * 1e3
    text, wanted = completion.text, session.typed[count:]
    lead = prefix[len(prefix) - completion.backed_up :]
    path = Path(session.path)
    errors, document, finished = (
        len(judged(each, path)) if judged is not None else -1
        for each in (prefix + text + suffix, prefix + suffix, session.before + session.typed + session.after)
    )
    return Outcome(
        path=session.path,
        language=session.language.id,
        line=prefix.count("\n") + 1,
        before=prefix[-EXCERPT:],
        after=suffix[:EXCERPT],
        wanted=wanted[:EXCERPT],
        text=text,
        reason=completion.finish_reason,
        gate=completion.report["gate"],
        raw=bool(said(prompted, lead)),
        duplicate=duplicates(prefix, text, suffix),
        authors=duplicates(prefix, wanted, suffix),
        errors=errors,
        document_errors=document,
        finished_errors=finished,
        ms=round(ms, 2),
    )


def duplicates(prefix: str, text: str, suffix: str) -> bool:
    """Whether the first or last line of what is inserted, by itself or with what it joins, is the line that follows."""
    following = next((line.strip() for line in suffix.split("\n")[1:] if line.strip()), "")
    if len(following) <= SHORT or not text.strip():
        return False
    before, rest = prefix.rpartition("\n")[2], suffix.partition("\n")[0]
    lines = text.strip("\n").split("\n")
    joined = (before + text + rest).strip("\n").split("\n")
    return following in {each.strip() for each in (lines[0], lines[-1], joined[0], joined[-1])}


def failures(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The requests that were not answered as they should be, by what was wrong."""
    filled = [each for each in outcomes if each.text.strip()]
    return {
        "no text where the target has any": [each for each in outcomes if each.raw and not each.text.strip()],
        "the line behind the cursor again": [each for each in filled if each.duplicate],
        "more errors than the document": [each for each in filled if each.errors > each.document_errors >= 0],
        "more errors than the finished file": [each for each in filled if each.errors > each.finished_errors >= 0],
    }


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts and shares of all requests, and of each language."""
    languages = sorted({each.language for each in outcomes})
    by_language = {name: _figures([each for each in outcomes if each.language == name]) for name in languages}
    return {**_figures(outcomes), "languages": by_language}


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    raw = [each for each in outcomes if each.raw]
    filled = [each for each in outcomes if each.text.strip()]
    parsed = [each for each in filled if min(each.errors, each.document_errors, each.finished_errors) >= 0]
    duplicate = [each for each in filled if each.duplicate]
    return {
        "count": len(outcomes),
        "with_text": len(filled),
        "target_has_text": len(raw),
        "answered_where_target_has_text": _share(bool(each.text.strip()) for each in raw),
        "duplicates": len(duplicate),
        "duplicates_of_the_author": sum(each.authors for each in duplicate),
        "judged_by_errors": len(parsed),
        "no_worse_than_the_document": _share(each.errors <= each.document_errors for each in parsed),
        "no_worse_than_the_finished_file": _share(each.errors <= each.finished_errors for each in parsed),
        "finish_reasons": dict(Counter(each.reason for each in outcomes).most_common()),
        "gate": dict(Counter(each.gate for each in outcomes).most_common()),
        "median_ms": round(statistics.median(each.ms for each in outcomes), 1) if outcomes else None,
    }


def _share(values: Iterable[bool]) -> float | None:
    listed = list(values)
    return round(sum(listed) / len(listed), 4) if listed else None


def summary(found: dict[str, Any]) -> str:
    """A table, a row for each language and one for all."""
    columns = ["requests", "text", "where any", "duplicates", "≤ document", "≤ finished", "median ms"]
    lines = [f"{'':18}" + "".join(f"{column:>12}" for column in columns)]
    for name, each in [*found["languages"].items(), ("all", found)]:
        shares = [
            each[key]
            for key in (
                "answered_where_target_has_text",
                "no_worse_than_the_document",
                "no_worse_than_the_finished_file",
            )
        ]
        answered, document, finished = ("–" if share is None else f"{share:.1%}" for share in shares)
        cells = [each["count"], each["with_text"], answered, each["duplicates"], document, finished, each["median_ms"]]
        lines.append(f"{name:18}" + "".join(f"{cell!s:>12}" for cell in cells))
    lines.append(f"duplicates that the author wrote, too: {found['duplicates_of_the_author']}")
    lines.append(f"finish reasons: {found['finish_reasons']}; gate: {found['gate']}")
    return "\n".join(lines)


def _show(outcome: Outcome) -> str:
    facts = f"{outcome.reason}, gate {outcome.gate}, errors {outcome.errors}/{outcome.document_errors}"
    return (
        f"{outcome.path}:{outcome.line} ({facts}/{outcome.finished_errors})\n"
        f"{outcome.before}⟦{outcome.text}⟧{outcome.after}\n(the author: {outcome.wanted!r})"
    )


def settings(target: str = "", draft: str = "", gate: str = "", grammar: str = "", max_tokens: int = 0) -> Config:
    """The defaults with what is given in its place. Nothing is learnt, and time is no limit: texts would depend on
    their order, and on the machine."""
    plain = Config()
    return replace(
        plain,
        target=replace(plain.target, path=target),
        draft=draft or plain.draft,
        gate=gate or plain.gate,
        grammar=grammar or plain.grammar,
        max_tokens=max_tokens or plain.max_tokens,
        learn=False,
        time_budget_ms=0,
    )
