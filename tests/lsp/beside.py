"""``python -m tests.lsp.beside``: what requests of one window take while another has a hostile workspace open.

Two real servers share a model process. The first window types and asks; the second one does the same in a workspace
that is ordinary, and then in one that attacks: grammars that are refused slowly, lists of patterns, settings that are
hard to read, connections that say nothing or nonsense. Runs beside the attack alternate with runs beside the ordinary
workspace, so the ratio is to that.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from lsprotocol import types

from .helpers import Server, running

SERVE = [sys.executable, "-m", "codespec", "serve"]
PAUSE_S, HOSTILE_PAUSE_S = 0.15, 0.3
CODE = "def area(width, height):\n    return width * height\n\n\n"


class Hostile:
    """A workspace folder that attacks while a window has it open.

    Args:
        before: makes the files.
        each: changes them before each request; given its number.
        during: lasts as long as the attack.
    """

    def __init__(
        self,
        before: Callable[[Path], None] = lambda folder: None,
        each: Callable[[Path, int], None] = lambda folder, number: None,
        during: Callable[[Path], AbstractContextManager[None]] = lambda home: nullcontext(),
    ) -> None:
        self.before, self.each, self.during = before, each, during


def _settings(folder: Path, text: str) -> None:
    (folder / "codespec.toml").write_text(text, "utf-8")


def _grammar(folder: Path, number: int) -> None:
    """Another one each time: a refusal is remembered."""
    (folder / "slow.gbnf").write_text(f'root ::= "{number}' + "a" * 50_000 + '"' + ' | "b"' * 2_000, "utf-8")


def _patterns(folder: Path) -> None:
    place = folder
    for level in range(59):
        (place / ".gitignore").write_text("".join(f"*{level}*{n}*x*\n" for n in range(4_500))[:63_000], "utf-8")
        place /= "d"
        place.mkdir()


def _pipes(folder: Path) -> None:
    os.mkfifo(folder / "part.lark")
    (folder / "main.lark").write_text("%import .part.x\nstart: x\n", "utf-8")
    _settings(folder, '[language.python]\ngrammar = "main.lark"\n')


def _schema(folder: Path, number: int) -> None:
    """A device where a file should be, and a large schema that cannot be enforced, another one each time."""
    alternatives = [{"pattern": f"^(a{{1,40}}){{1,40}}{number}$"}, {"not": {"$ref": "#/$defs/a"}}] * 500
    place = folder / "slow.schema.json"
    place.unlink(missing_ok=True)
    if number % 2:
        place.symlink_to("/dev/zero")
    else:
        place.write_text(json.dumps({"$defs": {"a": {"oneOf": alternatives}}, "$ref": "#/$defs/a"}), "utf-8")


@contextmanager
def _silent(home: Path) -> Iterator[None]:
    """Connections to the model process; some begin a frame."""
    with contextlib.ExitStack() as stack:
        for address in (home / "run").glob("*.sock"):
            for number in range(60):
                end = stack.enter_context(socket.socket(socket.AF_UNIX))
                end.setblocking(False)
                with contextlib.suppress(OSError):
                    end.connect(str(address))
                    end.send(b"\0\0\1\0{" if number % 2 else b"")
        yield


@contextmanager
def _nonsense(home: Path) -> Iterator[None]:
    """Some hundred connections to the model process each second that say what is no greeting, and end."""
    done = threading.Event()

    def speak() -> None:
        number = 0
        while not done.wait(0.01):
            for address in (home / "run").glob("*.sock"):
                with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as end:
                    end.settimeout(1.0)
                    end.connect(str(address))
                    end.sendall(_NONSENSE[number % len(_NONSENSE)])
            number += 1

    thread = threading.Thread(target=speak)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


_NONSENSE = [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff" * 4, b"\0\0\0\x04null", os.urandom(200), b""]

HOSTILE = {
    "refused grammars": Hostile(lambda f: _settings(f, '[language.python]\ngrammar = "slow.gbnf"\n'), _grammar),
    "pipes among grammars": Hostile(_pipes),
    "lists of patterns": Hostile(_patterns),
    "settings": Hostile(each=lambda f, n: _settings(f, f"x{n} = 1\n" + "a" + ".a" * 20_000 + " = 1\n")),
    "schemas": Hostile(lambda f: _settings(f, '[language.python]\ngrammar = "slow.schema.json"\n'), _schema),
    "silent connections": Hostile(during=_silent),
    "nonsense": Hostile(during=_nonsense),
}


async def _ask(server: Server, uri: str, text: str, version: int) -> float:
    """Milliseconds until the answer to a request behind a line that was just typed."""
    server.change(types.TextDocumentContentChangeWholeDocument(text), uri, version)
    began = time.perf_counter()
    await server.ask(text.count("\n"), len(text.rpartition("\n")[2]), uri)
    assert "Traceback" not in server.stderr, server.stderr
    return (time.perf_counter() - began) * 1e3


async def _beside(home: Path, quiet: Path, loud: Path, attack: Hostile, requests: int) -> list[float]:
    """What the first window's requests took while the second one was open."""
    attack.before(loud)
    deepest = max(loud.rglob("d"), default=loud, key=lambda path: len(path.parts))
    async with running(home, SERVE, folder=quiet) as first, running(home, SERVE, folder=loud) as second:
        own, other = (quiet / "a.py").as_uri(), (deepest / "b.py").as_uri()
        first.open(CODE, own)
        second.open(CODE, other)
        with attack.during(home):
            done = asyncio.Event()

            async def be_loud() -> None:
                number = 0
                while not done.is_set():
                    number += 1
                    attack.each(loud, number)
                    await _ask(second, other, CODE + f"loud_{number} = area(", number + 1)
                    await asyncio.sleep(HOSTILE_PAUSE_S)

            task = asyncio.create_task(be_loud())
            found = []
            for number in range(requests):
                found.append(await _ask(first, own, CODE * 2 + f"value_{number} = area(", number + 2))
                await asyncio.sleep(PAUSE_S)
            done.set()
            await task
        return found[5:]  # the first ones wait for the models


def measure(attack: Hostile, requests: int, rounds: int = 1) -> tuple[list[float], list[float]]:
    """Milliseconds beside an ordinary workspace and beside the hostile one, of as many requests in each round."""
    found: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for each, times in zip((Hostile(), attack), found, strict=True):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                base = Path(folder).resolve()
                for name in ("home", "quiet", "loud"):
                    (base / name).mkdir()
                with contextlib.redirect_stderr(io.StringIO()):
                    times += asyncio.run(_beside(base / "home", base / "quiet", base / "loud", each, requests))
    return found


def tail(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.lsp.beside", description=__doc__)
    parser.add_argument("--requests", type=int, default=100, help="in each round")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--attacks", nargs="+", choices=HOSTILE, default=list(HOSTILE))
    chosen = parser.parse_args()
    for name in chosen.attacks:
        usual, beside = measure(HOSTILE[name], chosen.requests, chosen.rounds)
        median, most = statistics.median(beside) / statistics.median(usual), tail(beside) / tail(usual)
        print(
            f"{name:22} beside an ordinary workspace {statistics.median(usual):6.0f} ms (95 % {tail(usual):6.0f}), "
            f"beside this one {median:5.2f} x ({most:5.2f} x)",
            flush=True,
        )


if __name__ == "__main__":
    main()
