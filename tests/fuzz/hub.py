"""``python -m tests.fuzz hub``: a hub that answers anything. Fetching from it may fail in one line, and no more.

No file outside the models folder may change, and what is in it may not grow beyond what the hub named.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import http.server
import json
import os
import re
import sys
import tempfile
import threading
from pathlib import Path
from random import Random
from typing import Any

from codespec.models.hub import look_up, pull
from codespec.models.registry import models_folder
from codespec.protocols import CodespecError

LARGEST = 64 * 1024
MARGIN = 1 << 24  # of one piece that came before the end was seen
NAMES = (
    "m-q8_0.gguf",
    "../../planted.gguf",
    "/tmp/planted.gguf",
    "a/b\\c-q4_0.gguf",
    ".gguf",
    "\x1b[2J.gguf",
    "ü" * 300,
)
ODD: tuple[Any, ...] = (
    None,
    0,
    -1,
    7,
    2**63,
    1.5,
    "",
    "x",
    "../../planted",
    [],
    {},
    True,
    "f" * 64,
    "\x1b[2J",
    "a" * 9000,
)


class _Answers(http.server.BaseHTTPRequestHandler):
    rng: Random
    body = b""

    def do_GET(self) -> None:
        info = self.path.startswith("/api/")
        rng = self.rng
        status = rng.choice((206, 301, 403, 404, 416, 500)) if rng.random() < 0.15 else 200
        body = json.dumps(_about(rng, type(self).body)).encode() if info else type(self).body
        if rng.random() < 0.05:
            body = rng.randbytes(rng.randrange(100))
        elif rng.random() < 0.1:
            body = body + rng.randbytes(rng.randrange(4 * LARGEST))
        elif rng.random() < 0.1:
            body = body[: rng.randrange(len(body) + 1)]
        said = rng.choice((0, len(body) + 100, None)) if rng.random() < 0.15 else len(body)
        self.send_response(status)
        if said is not None:
            self.send_header("Content-Length", str(said))
        for name, values in (("Content-Range", ("bytes 0-1/2", "x")), ("Location", ("/", "file:///etc/passwd"))):
            if rng.random() < 0.05:
                self.send_header(name, rng.choice(values))
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):  # who asked has seen enough
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


def _about(rng: Random, body: bytes) -> Any:
    """What the hub says of a repository: right, but for one thing or two."""

    def maybe(right: Any) -> Any:
        return rng.choice(ODD) if rng.random() < 0.04 else right

    checksum = hashlib.sha256(body).hexdigest()
    siblings = [
        {
            "rfilename": maybe(rng.choice(NAMES) if rng.random() < 0.4 else NAMES[0]),
            "size": maybe(len(body)),
            "lfs": maybe({"sha256": maybe(checksum), "size": maybe(len(body)), "pointerSize": 1}),
        }
        for _ in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    card = maybe({"license": maybe("mit")})
    return maybe({"id": maybe("me/m"), "siblings": maybe(siblings), "cardData": card, "tags": maybe([])})


def main(arguments: list[str]) -> int:
    """Run; 1 if there was another error than one line, or a file where none may be."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz hub", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    outcomes: collections.Counter[str] = collections.Counter()
    failures: list[str] = []
    largest = 0
    with tempfile.TemporaryDirectory() as top:
        os.environ |= {"CODESPEC_DATA": f"{top}/in/data", "HF_HUB_DOWNLOAD_TIMEOUT": "2", "HF_HOME": f"{top}/in/hf"}
        import huggingface_hub.file_download as downloads
        import huggingface_hub.utils._http as requests

        for module in (downloads, requests):  # between two attempts
            module.time.sleep = lambda seconds: None
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_address[1]}"
            for seed in range(options.seed, options.seed + options.count):
                rng = _Answers.rng = Random(seed)
                _Answers.body = b"GGUF" + rng.randbytes(rng.randrange(LARGEST))
                said = _fetch(address, rng)
                outcomes[re.sub(r"'[^']*'|[\d,]+|\([^)]*\)|/\S+", "…", said)[:90]] += 1
                if not said.startswith(("fetched", "refused")) or "\n" in said or "\x1b" in said:
                    failures.append(f"seed {seed}: {said[:200]}")
                found = [path for path in Path(top).rglob("*") if path.is_file()]
                largest = max(largest, sum(path.stat().st_size for path in found))
                outside = [path for path in found if not path.is_relative_to(f"{top}/in")]
                if outside or Path("/tmp/planted.gguf").exists():
                    failures.append(f"seed {seed}: {outside or '/tmp/planted.gguf'}")
                for path in models_folder().rglob("*.*"):
                    if path.is_file():
                        path.unlink()
            server.shutdown()
    for said, count in outcomes.most_common(30):
        print(f"{count:6}  {said}")
    print(f"at most {largest:,} bytes on the disk")
    print(*(f"FAILED  {failure}" for failure in failures), sep="\n")
    print(f"{options.count} answers, seeds from {options.seed}: {len(failures)} failed")
    return 1 if failures or largest > MARGIN else 0


def _fetch(address: str, rng: Random) -> str:
    unverified = rng.random() < 0.3
    try:
        offer = look_up("me/m-GGUF", address)
        path = pull(offer, lambda *_: None, address, unverified=unverified)
    except CodespecError as error:
        # The command line prints it through a filter for what acts on terminals; line ends are its own.
        return f"refused: {error}".replace("\x1b", "␛")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"fetched {path.name}".replace("\x1b", "␛")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
