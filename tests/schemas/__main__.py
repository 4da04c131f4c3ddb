"""How many schemas of published packages compile, and which instances of them are taken.

    python -m tests.schemas FOLDER --seed 1 [--half tuned|held-out] [--limit N] [--json FILE]

FOLDER holds one folder for each package of ``packages.txt``, unpacked. Instances come from ``hypothesis-jsonschema``
(``pip install hypothesis-jsonschema hypothesis==6.120.0 rfc3986-validator``) and from mutations of them; ``jsonschema``
says which are valid. Keys are shuffled.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.schemas.instances import can_draw, doubled, instances, text_of
from tests.schemas.real import collect, validator

SECONDS = 60.0  # for one schema, its instances included


def half(file: Path, folder: Path) -> str:
    """The half that a schema belongs to, the same for every seed."""
    digest = hashlib.sha256(str(file.relative_to(folder)).encode()).digest()
    return "tuned" if digest[0] % 2 else "held-out"


def judge(file: Path, seed: int, compile_only: bool, connection: Any) -> None:
    """Sends what became of one schema, as a dictionary."""
    from codespec.grammar import Grammar, GrammarError
    from codespec.grammar.check import accepts_text

    source = file.read_text("utf-8-sig")
    row: dict[str, Any] = {"file": str(file), "valid": 0, "invalid": 0, "valid refused": [], "invalid taken": []}
    started = time.perf_counter()
    try:
        grammar = Grammar.from_json_schema(source, file.name)
        accepts_text(grammar, "")
    except GrammarError as error:
        row["refused"] = str(error)
    row["seconds"] = time.perf_counter() - started
    connection.send(row)
    if "refused" in row or compile_only:
        return
    schema = json.loads(source)
    check = validator(schema)
    rng = random.Random(seed)
    for value in instances(schema, check, rng):
        valid = check.is_valid(value)
        text = text_of(value, rng)
        taken = accepts_text(grammar, text).accepted
        row["valid" if valid else "invalid"] += 1
        if valid and not taken:
            row["valid refused"].append(text)
        if taken and not valid:
            row["invalid taken"].append(text)
        twice = doubled(schema, value, rng)
        if valid and twice and accepts_text(grammar, twice).accepted:
            row["invalid taken"].append(twice)
        connection.send(row)


def run(file: Path, seed: int, compile_only: bool) -> dict[str, Any]:
    """The last row of a process of its own, so that a schema that never ends does not stop the rest."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=judge, args=(file, seed, compile_only, sender), daemon=True
    )
    process.start()
    sender.close()
    deadline = time.monotonic() + SECONDS
    row: dict[str, Any] = {"file": str(file), "refused": f"no answer in {SECONDS:.0f} s", "seconds": SECONDS}
    try:
        while receiver.poll(max(0.0, deadline - time.monotonic())):
            row = receiver.recv()
    except EOFError:
        pass
    process.terminate()
    process.join()
    return row


def report(rows: list[dict[str, Any]]) -> None:
    refused = [row["refused"] for row in rows if "refused" in row]
    print(f"schemas {len(rows)}, refused {len(refused)} ({len(refused) / max(1, len(rows)):.1%})")
    lacking = sum("refused" not in row and row["valid"] == 0 for row in rows)
    print(f"accepted schemas without a valid instance {lacking}")
    for reason, count in Counter(map(_keyword, refused)).most_common(25):
        print(f"  {count:5} {reason}")
    for kind, wrong in (("valid", "valid refused"), ("invalid", "invalid taken")):
        total, bad = sum(row.get(kind, 0) for row in rows), sum(len(row.get(wrong, ())) for row in rows)
        print(f"{kind} instances {total}, {wrong.split()[1]} {bad} ({bad / max(1, total):.2%})")
    times = sorted(row["seconds"] for row in rows if "refused" not in row) or [0.0]
    p95 = times[int(0.95 * (len(times) - 1))]
    print(f"compile time of the accepted: median {statistics.median(times) * 1e3:.0f} ms, p95 {p95 * 1e3:.0f} ms")


def _keyword(reason: str) -> str:
    """The keyword that a refusal names, and its words without the place."""
    place, _, cause = reason.partition(": /")[2].partition(": ")
    return f"{place.rpartition('/')[2][:30]}: {cause.split(';')[0][:70]}" if cause else reason[-90:]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.schemas", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=["tuned", "held-out"])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--compile-only", action="store_true", help="no instances")
    parser.add_argument("--json", type=Path, help="one row a schema")
    options = parser.parse_args()
    if not options.compile_only and not can_draw():
        raise SystemExit("hypothesis-jsonschema draws nothing with this hypothesis; hypothesis==6.120.0 works")
    files = collect(options.folder, random.Random(options.seed))
    random.Random(options.seed).shuffle(files)
    files = [file for file in files if options.half in (None, half(file, options.folder))][: options.limit]
    rows = [run(file, options.seed, options.compile_only) for file in files]
    if options.json:
        options.json.write_text("\n".join(map(json.dumps, rows)))
    report(rows)


if __name__ == "__main__":
    main()
