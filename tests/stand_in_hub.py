"""As much of a Hugging Face hub as fetching models asks for, over real HTTP on loopback."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator

from tests.present import present


class Hub:
    """What it has, and how it behaves.

    Attributes:
        files: contents by ``OWNER/REPOSITORY`` and name.
        gated: repositories whose licence has to be accepted.
        breaks_after: bytes of a file after which connections break off, once.
        lies: whether the checksums that it gives are wrong.
        checksums, sizes: what it says instead of the true ones, by name of the file.
        more: bytes that it sends behind each file, without saying how many come.
        ranges: the ``Range`` headers of the requests for files.
    """

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.breaks_after: int | None = None
        self.lies = False
        self.checksums: dict[str, object] = {}
        self.sizes: dict[str, object] = {}
        self.more = 0
        self.ranges: list[str | None] = []
        self.url = ""


class _Handler(http.server.BaseHTTPRequestHandler):
    hub: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/\w+)?", path):
            self._model(match[1])
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/\w+/(.+)", path):
            self._file(match[1], match[2])
        else:
            self._refuse(404, "EntryNotFound")

    def _model(self, repository: str) -> None:
        if repository not in self.hub.files:
            return self._refuse(404, "RepoNotFound")
        siblings = [
            {
                "rfilename": name,
                "size": self.hub.sizes.get(name, len(data)),
                "lfs": {
                    "sha256": self.hub.checksums.get(name, self._hash(data)),
                    "size": len(data),
                    "pointerSize": 134,
                },
            }
            for name, data in self.hub.files[repository].items()
        ]
        card = {"license": "apache-2.0"}
        body = json.dumps({"id": repository, "siblings": siblings, "cardData": card, "tags": []}).encode()
        return self._send(200, body, {"Content-Type": "application/json"})

    def _hash(self, data: bytes) -> str:
        return hashlib.sha256(data + b"?" * self.hub.lies).hexdigest()

    def _file(self, repository: str, name: str) -> None:
        if repository in self.hub.gated:
            return self._refuse(403, "GatedRepo")
        data = self.hub.files.get(repository, {}).get(name)
        if data is None:
            return self._refuse(404, "EntryNotFound")
        asked = self.headers.get("Range")
        self.hub.ranges.append(asked)
        start = int(present(re.match(r"bytes=(\d+)-", asked))[1]) if asked else 0
        headers = {"ETag": f'"{self._hash(data)}"', "X-Repo-Commit": "0" * 40}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        return self._send(206 if asked else 200, data[start:], headers, self.hub.more)

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"", {"X-Error-Code": code, "X-Error-Message": f"as asked: {code}"})

    def _send(self, status: int, body: bytes, headers: dict[str, str], more: int = 0) -> None:
        self.send_response(status)
        length = {} if more else {"Content-Length": str(len(body))}
        for key, value in {**headers, **length}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = self.hub.breaks_after
        if cut is not None and len(body) > cut:
            self.hub.breaks_after = 0
            self.wfile.write(body[:cut])
            self.close_connection = True
            return
        self.wfile.write(body)
        self.close_connection = self.close_connection or more > 0
        with contextlib.suppress(OSError):  # whoever asked has seen enough
            while more > 0:
                more -= self.wfile.write(bytes(min(more, 1 << 20)))

    def log_message(self, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def stand_in_hub() -> Iterator[Hub]:
    """A hub that runs until the block ends."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
