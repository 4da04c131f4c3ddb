"""``python -m tests.http.schemas``: is what the server generates for a JSON Schema valid?

    python -m tests.http.schemas FOLDER --count 500

FOLDER holds a folder for each of some packages of ``tests/schemas/packages.txt``, unpacked. Of their schemas, 50 that
the server takes are asked for in turn, at temperature 1, each time with another seed; ``jsonschema`` says what is
valid.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.http.child_server import ChildServer
from tests.http.raw_client import Reply, ask, written
from tests.schemas.real import collect, validator

SCHEMAS, TOKENS = 50, 900
CLOSING = {'"': 6, '"}': 5, '"]': 5, "}": 4, "]": 4}
"""What ends a value is made likelier, and what repeats itself less likely (``SAMPLING``), so that more texts finish:
which of them are valid is the grammar's matter."""
SAMPLING = {"temperature": 1, "frequency_penalty": 0.5}
PROMPT = '{"name": "codespec", "version": 1}\n{"a": [1, 2]}\n'
AT_A_TIME = 2
LIMITS = {"seconds": 60.0}


@dataclass
class Report:
    """What came.

    Attributes:
        refused: schemas that the server does not take, and why.
        taken: schemas that it takes.
        reasons: why texts ended.
        finished_of: texts that finished, by schema.
        invalid: schema, seed, text and what is wrong with it.
    """

    refused: dict[str, str] = field(default_factory=dict)
    taken: list[tuple[str, Any]] = field(default_factory=list)
    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    finished_of: collections.Counter[str] = field(default_factory=collections.Counter)
    invalid: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The report to print."""
        lines = [f"refused: {name}: {why}" for name, why in self.refused.items()] + self.invalid[:20]
        total, finished = self.reasons.total(), self.reasons["stop"]
        lines.append(f"{len(self.taken)} schemas taken, {len(self.refused)} refused with a reason")
        lines.append(
            f"{total} texts: {dict(self.reasons.most_common())}; of {len(self.finished_of)} schemas some finished"
        )
        lines.append(f"{finished} finished, {len(self.invalid)} of them invalid")
        return "\n".join(lines)


class Asker:
    """Asks a server for texts of schemas."""

    def __init__(self, server: ChildServer, tokens: int = TOKENS) -> None:
        self._server, self._tokens = server, tokens
        self._biases: dict[str, int] = {}
        self.report = Report()

    async def take(self, schemas: list[tuple[str, Any]], most: int) -> None:
        """Find the first schemas that the server takes."""
        for text in CLOSING:
            reply = await ask(self._server.port, written({"content": text}, "/tokenize"))
            if len(reply.json["tokens"]) == 1:
                self._biases[str(reply.json["tokens"][0])] = CLOSING[text]
        for name, schema in schemas:
            reply = await self._ask(schema, 0, 1)
            if reply.status == 200:
                self.report.taken.append((name, schema))
            else:
                assert reply.status == 400, f"{name}: {reply.status} {reply.body[:300]!r}"
                self.report.refused[name] = reply.json["error"]["message"]
            if len(self.report.taken) == most:
                return

    async def generate(self, count: int) -> Report:
        """Ask for ``count`` texts, of one schema after the other."""
        taken = self.report.taken
        waiting = iter([(*taken[number % len(taken)], number) for number in range(count)])
        await asyncio.gather(*(self._some(waiting) for _ in range(AT_A_TIME)))
        return self.report

    async def _some(self, waiting: Any) -> None:
        for name, schema, seed in waiting:
            reply = await self._ask(schema, seed, self._tokens)
            assert reply.status == 200, f"{name}: {reply.status} {reply.body[:300]!r}"
            [choice] = reply.json["choices"]
            self.report.reasons[choice["finish_reason"]] += 1
            if choice["finish_reason"] == "stop":
                self.report.finished_of[name] += 1
                wrong = judged(schema, choice["text"])
                if wrong:
                    self.report.invalid.append(f"invalid: {name}, seed {seed}: {wrong}: {choice['text'][:300]!r}")

    async def _ask(self, schema: Any, seed: int, tokens: int) -> Reply:
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
        fields = {"prompt": PROMPT, **SAMPLING, "seed": seed, "max_tokens": tokens, "response_format": form}
        fields["logit_bias"] = self._biases
        return await ask(self._server.port, written(fields), seconds=300)


def judged(schema: Any, text: str) -> str:
    """What is wrong with a text; empty for nothing."""
    try:
        error = next(validator(schema).iter_errors(json.loads(text)), None)
    except ValueError as mistake:
        return f"no JSON ({mistake})"
    return "" if error is None else error.message[:200]


def main() -> int:
    """Run; 1 where something is invalid."""
    parser = argparse.ArgumentParser(prog="python -m tests.http.schemas", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--schemas", type=int, default=SCHEMAS, help="how many are asked for")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of a text at most")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of schemas")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    files = collect(options.folder, rng)
    rng.shuffle(files)
    schemas = [(str(file.relative_to(options.folder)), json.loads(file.read_text("utf-8-sig"))) for file in files]
    with ChildServer(limits=LIMITS) as server:
        report = asyncio.run(_run(Asker(server, options.tokens), schemas, options.schemas, options.count))
    print(report.text())
    return 1 if report.invalid else 0


async def _run(asker: Asker, schemas: list[tuple[str, Any]], most: int, count: int) -> Report:
    await asker.take(schemas, most)
    return await asker.generate(count)


if __name__ == "__main__":
    raise SystemExit(main())
