"""``python -m benchmarks http``: the HTTP server beside llama-server, with one model and the same requests.

All servers run at once, and each request goes to one after the other, so that whatever else the machine does hits them
alike. Requests are streamed; a time to first token is that to the first event with text, from before the connection.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.llama_server import Server

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "version": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$"},
        "keywords": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 5},
        "private": {"type": "boolean"},
        "license": {"enum": ["MIT", "Apache-2.0", "GPL-3.0-or-later"]},
    },
    "required": ["name", "version", "keywords", "private", "license"],
    "additionalProperties": False,
}
KINDS = ("free", "json", "code")
NO_INFILL = ("infill is not supported", "cannot fill in")
"""What llama-server and codespec say of a model that was not trained to fill in the middle."""


class CannotFillIn(RuntimeError):
    """A server says that its model cannot fill in the middle."""


@dataclass(frozen=True)
class Answer:
    """One streamed answer.

    Attributes:
        first_ms: to the first text.
        total_ms: to the end.
        tokens: generated.
    """

    first_ms: float
    total_ms: float
    tokens: int


@dataclass(frozen=True)
class Row:
    """The answers of one server to the requests of one kind from so many clients.

    Attributes:
        first_ms: the median.
        per_second: the median of tokens per second of each answer, from request to end.
        throughput: tokens of all answers per second.
    """

    server: str
    kind: str
    clients: int
    count: int
    first_ms: float
    per_second: float
    throughput: float


def requests(kind: str, files: Sequence[Path], count: int, tokens: int) -> list[tuple[str, dict[str, Any]]]:
    """Paths and bodies."""
    found = []
    for number in range(count):
        text = files[number % len(files)].read_text("utf-8")
        middle = text.find("\n", len(text) // 3 + 97 * number % max(1, len(text) // 3))
        head, tail = text[max(0, middle - 1500) : middle], text[middle : middle + 600]
        body: dict[str, Any] = {"n_predict": tokens, "temperature": 0, "stream": True, "cache_prompt": True}
        if kind == "code":
            found.append(("/infill", {**body, "input_prefix": head, "input_suffix": tail, "prompt": ""}))
        elif kind == "json":
            found.append(("/completion", {**body, "prompt": f"# package {number}\n", "json_schema": SCHEMA}))
        else:
            found.append(("/completion", {**body, "prompt": head}))
    return found


def ask(port: int, path: str, body: dict[str, Any]) -> Answer:
    """One streamed request.

    Raises:
        CannotFillIn: the model cannot.
        RuntimeError: it was refused for another reason.
    """
    began = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    first, tokens = 0.0, 0
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            said = response.read()[:200].decode("utf-8", "replace")
            refused = any(each in said.lower() for each in NO_INFILL) and path == "/infill"
            raise (CannotFillIn if refused else RuntimeError)(f"status {response.status}: {said}")
        for line in response:
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                if event.get("content") and not first:
                    first = time.perf_counter()
                if event.get("stop"):
                    tokens = event["tokens_predicted"]
    finally:
        connection.close()
    end = time.perf_counter()
    return Answer(((first or end) - began) * 1e3, (end - began) * 1e3, tokens)


def measure(
    ports: dict[str, int], kind: str, clients: int, asked: Sequence[tuple[str, dict[str, Any]]], repeats: int
) -> list[Row]:
    """A row for each server: rounds of as many requests as there are clients, one server after the other."""
    answers: dict[str, list[Answer]] = {name: [] for name in ports}
    seconds = dict.fromkeys(ports, 0.0)
    with ThreadPoolExecutor(clients) as pool:
        for start in [at for _ in range(repeats) for at in range(0, len(asked), clients)]:
            for name, port in ports.items():
                began = time.perf_counter()
                answers[name] += pool.map(lambda each, port=port: ask(port, *each), asked[start : start + clients])
                seconds[name] += time.perf_counter() - began
    return [_row(name, kind, clients, answers[name], seconds[name]) for name in ports]


def _row(name: str, kind: str, clients: int, answers: Sequence[Answer], seconds: float) -> Row:
    rates = [1e3 * each.tokens / each.total_ms for each in answers]
    tokens = sum(each.tokens for each in answers)
    return Row(name, kind, clients, len(answers), median(a.first_ms for a in answers), median(rates), tokens / seconds)


def lines(
    model: Path, server: Path, draft: Path | None, threads: int, slots: int
) -> dict[str, list[str] | Callable[[int], list[str]]]:
    """The commands of the servers, by name; llama-server alone and, where there is one, with a draft model."""
    own = [str(server), "-m", str(model), "-t", str(threads), "-np", str(slots), "-c", str(4096 * slots), "--no-webui"]
    codespec = [sys.executable, "-m", "codespec", "serve", "--target", str(model), "--http"]
    drafted = {"llama-server with a draft": [*own, "-md", str(draft), "--spec-draft-p-min", "0.5"]} if draft else {}
    return {"codespec": lambda port: [*codespec, str(port)], "llama-server": own, **drafted}


def run(
    model: Path,
    server: Path,
    draft: Path | None,
    files: Sequence[Path],
    count: int,
    tokens: int,
    repeats: int,
    threads: int,
    clients: Sequence[int],
    out: Path | None,
    show: Callable[[str], None] = print,
) -> int:
    """Measure and print a table; ``out`` is a folder for ``http.json``."""
    rows: list[Row] = []
    environment = {**os.environ, "CODESPEC_IDLE_EXIT_S": "0", "GOMP_SPINCOUNT": "20000"}
    for crowd in clients:
        with ExitStack() as stack:
            ports = {}
            for name, line in lines(model, server, draft, threads, crowd).items():
                ports[name] = stack.enter_context(Server(line, environment, 300)).port
            for kind in KINDS:
                asked = requests(kind, files, count, tokens)
                try:
                    measure(ports, kind, crowd, asked[: max(crowd, 2)], 1)  # everything is read in once
                except CannotFillIn as error:
                    show(f"{kind:4} left out: {error}")
                    continue
                rows += measure(ports, kind, crowd, asked, repeats)
                for row in rows[-len(ports) :]:
                    show(told(row))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "http.json").write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n", "utf-8")
    return 0


def told(row: Row) -> str:
    """A row for people."""
    clients = "1 client " if row.clients == 1 else f"{row.clients} clients"
    return (
        f"{row.kind:4} {clients} {row.server:26} first token {row.first_ms:8.1f} ms, "
        f"{row.per_second:7.1f} tokens/s of an answer, {row.throughput:7.1f} of all ({row.count} answers)"
    )


def python_files(paths: Iterable[Path]) -> list[Path]:
    """The larger Python files in some folders."""
    found = sorted(file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py")))
    return [each for each in found if each.stat().st_size > 4000]
