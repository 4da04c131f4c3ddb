"""``python -m tests.http.beside_llama_server --count 1000``: answers beside those of llama-server.

Both have the embedded model. Greedy requests to ``/completion`` and ``/v1/completions``, prompts of token ids: both
define the text, the tokens, the reason of the end and the counts, with and without stop texts, streamed and whole.
Floating point differs between the two, so that a token may be another one where two are about as likely. Such texts are
told apart by the probabilities of the place where they part: a margin below ``MARGIN`` is counted as rounding, any
other difference fails. Four differences are known, and counted apart:

- Of several stop texts that are complete within one token llama-server takes the one that begins first, codespec the
  one that ends first, whatever the tokens are.
- llama-server counts the token that ends a text by itself.
- llama-server writes tokens that mark the parts of a prompt, as if they were text; codespec never does.
- Where a text ends within a character, llama-server's stream leaves that out, unlike its whole answer.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import httpx

from codespec import Config
from codespec.config_sections import TargetConfig
from codespec.models.registry import EMBEDDED_TARGET
from tests.http.answer_forms import events
from tests.http.any_request import REPEATED, TEXTS, any_prompt, stops_for
from tests.http.http_servers import serving
from tests.http.same_answers import NOT_KEPT
from tests.remote.real_llama_server import MISSING, binary, running

MARGIN = 0.1
"""Of the logarithms of two probabilities."""
END = 0
"""The token that ends a text of the embedded model."""
MARKS = frozenset({1, 2, 3})
"""Its tokens that mark what comes before, behind and between."""
FORCED = [
    'root ::= "é😀文字 ß→∑" | "naïve — 日本"',
    'root ::= ("alpha, " | "beta, " | "gamma, ")+',
    "root ::= [é😀文a ]+",
]

Pairs = list[tuple[dict[str, Any], dict[str, Any]]]
"""Our facts and theirs: of whole answers, of streams, and in OpenAI's older form."""


class Beside:
    """Asks both."""

    def __init__(self, ours: httpx.Client, theirs: httpx.Client) -> None:
        self._ours, self._theirs = ours, theirs
        self.counts: Counter[str] = Counter()
        self.margin = 0.0
        self.failures: list[str] = []

    def ask(self, seed: int) -> None:
        """One request of a seed: once without stop texts, once with parts of its answer."""
        chance = random.Random(seed)
        prompt = any_prompt(chance) or REPEATED
        if chance.random() < 0.2:
            prompt = "# " + chance.choice(TEXTS)
        tokens = self._ours.post("/tokenize", json={"content": prompt}).json()["tokens"][-200:]
        fields: dict[str, Any] = {"prompt": tokens, "n_predict": chance.choice([1, 5, 12, 24, 40]), "temperature": 0,
                                  "return_tokens": True, "cache_prompt": False}  # fmt: skip
        if chance.random() < 0.4:
            fields["grammar"] = chance.choice(FORCED)
        elif chance.random() < 0.3:  # beside a grammar that ends, llama-server answers 500
            fields["ignore_eos"] = True
        answer = self._same(seed, fields)
        if answer is not None and answer["content"]:
            self._same(seed, {**fields, "stop": stops_for(chance, [answer["content"]])})

    def _same(self, seed: int, fields: dict[str, Any]) -> dict[str, Any] | None:
        """The answer, where both give the same one."""
        ours, theirs = (facts(self._post(client, fields)) for client in (self._ours, self._theirs))
        pairs = [(ours, theirs)]
        for form in (streamed, older):
            pairs.append((form(self._ours, fields), form(self._theirs, fields)))
        differing = [(one, other) for one, other in pairs if one != other]
        if not differing:
            self.counts["the same"] += 1
            return ours
        what = next((name for name, holds in self._known.items() if holds(self, fields, pairs)), "")
        self.counts[what or "not the same"] += 1
        if not what:
            one, other = differing[0]
            shown = {name: (one[name], other.get(name)) for name in one if one[name] != other.get(name)}
            self.failures.append(f"seed {seed}: margin {self.margin:.3f} {shown} stop={fields.get('stop')!r}")
        return None

    def _ended(self, fields: dict[str, Any], pairs: Pairs) -> bool:
        """Whether all but the count of the end token is the same."""
        ours, theirs = pairs[0]
        if ours["stop_type"] != "eos" or theirs["tokens"][:-1] != ours["tokens"]:
            return False
        counts = ("tokens", "tokens_predicted", "completion_tokens", "total_tokens")
        return all({**one, **{name: other[name] for name in counts if name in one}} == other for one, other in pairs)

    def _half(self, fields: dict[str, Any], pairs: Pairs) -> bool:
        """Whether all but the half of a character at the end of the stream is the same."""
        (ours, theirs), (one, other), (older, others) = pairs
        alike = ours == theirs and older == others and ours["content"].endswith("\ufffd")
        return alike and {**one, "streamed": one["streamed"].rstrip("\ufffd")} == other

    def _rounding(self, fields: dict[str, Any], pairs: Pairs) -> bool:
        """Whether the texts part where both tokens are about as likely."""
        ours, theirs = (each["tokens"] + [END] for each in pairs[0])
        at = _parting(ours, theirs)
        if at is None:
            return False
        asked = {**fields, "prompt": fields["prompt"] + ours[:at], "n_predict": 1, "n_probs": 100}
        asked.pop("grammar", None)  # whose state would be that at the beginning
        best = self._post(self._ours, asked).get("completion_probabilities", [])[:1]
        known = {each["id"]: each["logprob"] for told in best for each in told["top_logprobs"]}
        self.margin = abs(known.get(ours[at], 0.0) - known.get(theirs[at], -99.0))
        return self.margin < MARGIN

    def _several_stops(self, fields: dict[str, Any], pairs: Pairs) -> bool:
        """Whether both stopped at the same token, for another stop text."""
        ours, theirs = pairs[0]
        both = ours["stop_type"] == theirs["stop_type"] == "word"
        return both and ours["stopping_word"] != theirs["stopping_word"] and ours["tokens"] == theirs["tokens"]

    def _marks(self, fields: dict[str, Any], pairs: Pairs) -> bool:
        """Whether the texts part where llama-server writes a mark."""
        ours, theirs = (each["tokens"] + [END] for each in pairs[0])
        at = _parting(ours, theirs)
        return at is not None and theirs[at] in MARKS and ours[at] not in MARKS

    _known: ClassVar = {
        "a mark as text": _marks,
        "another token within rounding": _rounding,
        "stop texts within one token": _several_stops,
        "an end token is counted": _ended,
        "half a character at the end of a stream": _half,
    }

    def _post(self, client: httpx.Client, fields: dict[str, Any]) -> dict[str, Any]:
        answer = client.post("/completion", json=fields)
        assert answer.status_code == 200, (fields, answer.text[:300])
        found: dict[str, Any] = answer.json()
        return found


def _parting(ours: list[int], theirs: list[int]) -> int | None:
    """Where two texts part."""
    return next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)


def facts(answer: dict[str, Any]) -> dict[str, Any]:
    """What both tell of a whole answer."""
    names = ("content", "tokens", "stop_type", "stopping_word", "tokens_predicted", "tokens_evaluated", "truncated")
    return {name: answer[name] for name in names}


def streamed(client: httpx.Client, fields: dict[str, Any]) -> dict[str, Any]:
    """What both tell of a stream."""
    parts = events(client.post("/completion", json={**fields, "stream": True}).text)
    text = "".join(each["content"] for each in parts)
    return {"streamed": text, **{name: parts[-1][name] for name in ("stop_type", "tokens_predicted")}}


def older(client: httpx.Client, fields: dict[str, Any]) -> dict[str, Any]:
    """What both tell in OpenAI's older form."""
    fields = {**fields, "max_tokens": fields["n_predict"]}
    answer = client.post("/v1/completions", json=fields).json()
    [choice], usage = answer["choices"], answer["usage"]
    counts = {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    return {"text": choice["text"], "finish_reason": choice["finish_reason"], **counts}


def compare(count: int, seed: int) -> Beside:
    """Ask so many requests of both."""
    config = Config(target=TargetConfig(path=str(EMBEDDED_TARGET)), time_budget_ms=0)
    with serving(config=config, exact=True) as server, running("-fa", "off", context=1024) as other:
        ours = httpx.Client(base_url=server.url, timeout=300, limits=NOT_KEPT)
        theirs = httpx.Client(base_url=other.url, timeout=300, limits=NOT_KEPT)
        with ours, theirs:
            beside = Beside(ours, theirs)
            with contextlib.suppress(KeyboardInterrupt):
                for each in range(seed, seed + count):
                    beside.ask(each)
                    if each % 50 == 0:
                        print(dict(beside.counts), file=sys.stderr, flush=True)
            return beside


def main() -> int:
    """Run; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.http.beside_llama_server", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if binary() is None:
        parser.exit(2, f"{MISSING}\n")
    beside = compare(options.count, options.seed)
    print("\n".join(beside.failures[:40]))
    print(", ".join(f"{count} {what}" for what, count in beside.counts.most_common()))
    return int(bool(beside.failures))


if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).parents[1] / "conftest.py"))  # nothing of the user's
    raise SystemExit(main())
