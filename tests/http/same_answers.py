"""``python -m tests.http.same_answers --count 1000``: answers with drafts and without, streamed and whole.

Each request is asked of a server that drafts and of one whose target decodes alone, of both whole and as a stream. All
four must tell the same: texts, tokens, probabilities, offsets, reasons, counts. Every other request has stop texts that
are parts of what it is answered without them; then the text must also be that one, cut by a search over all places.
Prints how many differ; 1 where any does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import runpy
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from codespec import Config
from codespec.config_sections import TargetConfig
from tests.http.answer_forms import Form, form_of
from tests.http.any_request import Asked, any_request, stops_for
from tests.http.http_servers import serving, with_chat_template
from tests.http.undrafted import undrafted

TOLD_EVERY = 10
NOT_KEPT = httpx.Limits(max_keepalive_connections=0)
"""A connection that the server closes because nobody asks for a while would lose the next request."""


@dataclass
class Report:
    """What was found.

    Attributes:
        counts: by path and whether all was the same.
        stopped: texts that a stop text ended.
    """

    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    stopped: int = 0
    texts: int = 0
    characters: int = 0

    def text(self) -> str:
        """The report to print."""
        lines = self.failures[:40]
        for path in sorted({path for path, _ in self.counts}):
            lines.append(f"{path}: {self.counts[path, True]} the same, {self.counts[path, False]} not")
        same = sum(count for (_, same), count in self.counts.items() if same)
        lines.append(
            f"{same} of {self.counts.total()} requests are answered the same; {self.texts} texts, {self.characters} "
            f"characters, {self.stopped} ended by a stop text"
        )
        return "\n".join(lines)


def cut(text: str, stops: list[str]) -> str:
    """A text up to the stop text that is complete first, the longest of those that end there."""
    ends = [(text.find(stop) + len(stop), -len(stop)) for stop in stops if stop in text]
    if not ends:
        return text
    end, length = min(ends)
    return text[: end + length]


class Comparison:
    """Asks several servers the same, the first of them drafting."""

    def __init__(self, clients: dict[str, httpx.Client]) -> None:
        self._clients, self.report = clients, Report()

    def ask(self, seed: int) -> None:
        """One request, of a seed."""
        chance = random.Random(seed)
        asked = any_request(chance)
        expected: dict[int, str] | None = None
        if chance.random() < 0.7:
            *_, plain = self._clients.values()
            free = self._answer(plain, asked, False)
            texts = {index: text["text"] for index, text in free["texts"].items()}
            prompt = asked.fields.get("prompt") if asked.fields.get("echo") else ""
            shown = prompt if isinstance(prompt, str) else ""
            stops = stops_for(chance, [text.removeprefix(shown) for text in texts.values()])
            asked.fields["stop"] = stops
            if isinstance(prompt, str):
                expected = {index: shown + cut(text.removeprefix(shown), stops) for index, text in texts.items()}
        forms = {
            f"{name}, {'streamed' if streamed else 'whole'}": self._answer(client, asked, streamed)
            for name, client in self._clients.items()
            for streamed in (False, True)
        }
        problems = self._problems(asked, forms, expected)
        self.report.counts[asked.path, not problems] += 1
        self.report.failures += [f"seed {seed}, {asked.path}: {each}" for each in problems]

    def _answer(self, client: httpx.Client, asked: Asked, streamed: bool) -> Form:
        fields: dict[str, Any] = {**asked.fields, "stream": streamed}
        if streamed and asked.path.startswith("/v1/c"):
            fields["stream_options"] = {"include_usage": True}
        answer = client.post(asked.path, json=fields)
        assert answer.status_code == 200, (asked, answer.status_code, answer.text[:500])
        return form_of(asked, answer.text, streamed)

    def _problems(self, asked: Asked, forms: dict[str, Form], expected: dict[int, str] | None) -> list[str]:
        (first, form), *others = forms.items()
        found = []
        for name, other in others:
            if dumped(other) != dumped(form):
                found.append(f"{first} and {name}: {_difference(form, other)}")
        for index, text in form["texts"].items():
            self.report.texts += 1
            self.report.characters += len(text["text"])
            if expected is not None and text["text"] != expected[index]:
                found.append(f"{text['text']!r} instead of {expected[index]!r} with {asked.fields['stop']!r}")
            told = text["told"]
            if asked.path == "/v1/completions" and told:
                if "".join(told["tokens"]) != text["text"]:
                    found.append(f"tokens {told['tokens']!r} are not {text['text']!r}")
                ends = zip(told["tokens"], told["text_offset"], strict=True)
                if not all(text["text"].startswith(token, offset) for token, offset in ends):
                    found.append(f"offsets {told['text_offset']} of {told['tokens']!r}")
            stop = asked.fields.get("stop")
            self.report.stopped += bool(stop and expected and text.get("reason", text.get("stop_type")) in
                                        ("stop", "word"))  # fmt: skip
        return found


def dumped(form: Form) -> str:
    """Its bytes."""
    return json.dumps(form, sort_keys=True)


def _difference(one: Any, other: Any, at: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}, key=str):
            if one.get(name) != other.get(name):
                return _difference(one.get(name), other.get(name), f"{at}/{name}")
    return f"{at}: {str(one)[:200]!r} and {str(other)[:200]!r}"


@contextlib.contextmanager
def both(exact: bool) -> Iterator[dict[str, httpx.Client]]:
    """Clients of a server that drafts and of one that does not."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        model = with_chat_template(Path(folder))
        config = Config(target=TargetConfig(path=str(model)), time_budget_ms=0)
        servers = {
            "drafts": stack.enter_context(serving(config=config, exact=exact)),
            "alone": stack.enter_context(serving(config=config, load=partial(undrafted, exact=exact))),
        }
        yield {
            name: stack.enter_context(httpx.Client(base_url=server.url, timeout=300, limits=NOT_KEPT))
            for name, server in servers.items()
        }


def compare(count: int, seed: int, exact: bool = True, tell: Callable[[str], None] = lambda text: None) -> Report:
    """Ask so many requests, or until it is interrupted.

    Args:
        exact: False lets both round as it comes, by how many rows a pass has.
        tell: told now and then how far it is.
    """
    with both(exact) as clients:
        comparison = Comparison(clients)
        with contextlib.suppress(KeyboardInterrupt):
            for each in range(seed, seed + count):
                comparison.ask(each)
                if (each - seed) % TOLD_EVERY == TOLD_EVERY - 1:
                    tell(comparison.report.text())
        return comparison.report


def main() -> int:
    """Run; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.http.same_answers", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first request; each next one adds 1")
    parser.add_argument("--not-exact", action="store_true", help="without `--exact`: rounding may tell texts apart")
    options = parser.parse_args()
    say = lambda text: print(text.splitlines()[-1], file=sys.stderr, flush=True)  # noqa: E731
    report = compare(options.count, options.seed, not options.not_exact, say)
    print(report.text())
    return int(bool(report.failures))


if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).parents[1] / "conftest.py"))  # nothing of the user's
    raise SystemExit(main())
