"""The server of llama-cpp-python, which takes texts, not tokens, and names tokens by their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from codespec.protocols import Cancel, ContextFull
from codespec.remote.errors import Refused
from codespec.remote.scoring.rows import UNKNOWN, Row
from codespec.remote.scoring.scorers import Scorer, ids_of

BAN = -1000.0
"""Added to the logit of a token that must not be generated."""


class LlamaCppScorer(Scorer):
    """``python -m llama_cpp.server --logits_all true``: ``/v1/completions`` (``llama.py``, ``_create_completion``).

    Where its tokenizer makes other tokens of a text, nothing is known of what comes after them. Nor is anything known
    of a token that shares its text with others, or of worse ones. Rows of a prompt (``echo``) take it long: it sorts
    and names tokens for each of the prompt's.
    """

    kind = "llama-cpp-python"
    best = 16
    more = (64, 100_000)
    _PATH = "/v1/completions"

    def score(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None = None) -> list[Row]:
        known, text = self._asked(tokens, last)
        if not known:
            return [UNKNOWN] * last
        tokens = tokens[: len(tokens) - (last - known)]
        answer = self._ask(text, cancel, echo=known > 1, logprobs=best)
        try:
            found = answer["choices"][0]["logprobs"]
            if known > 1:
                places = self._of_prompt(found, answer["usage"], tokens)[len(tokens) - known : len(tokens)]
            else:
                places = found["top_logprobs"][:1]
            rows = [self._named(place, best) for place in places]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "log-probabilities") from None
        # Rows that are not where they should be say nothing.
        return [*rows, *[UNKNOWN] * (last - known)] if len(rows) == known else [UNKNOWN] * last

    def best_among(self, tokens: Sequence[int], ids: Sequence[int], cancel: Cancel | None = None) -> int | None:
        known, text = self._asked(tokens, 1)
        if not known:
            return None
        others = sorted(set(range(self._vocabulary.size)).difference(ids))
        answer = self._ask(text, cancel, logit_bias=dict.fromkeys(map(str, others), BAN))
        try:
            choice, generated = answer["choices"][0], int(answer["usage"]["completion_tokens"])
            if generated == 0 and choice["finish_reason"] == "stop":
                possible = set(self._vocabulary.declared_ends.intersection(ids))
            elif generated == 1:
                same = [token for token in ids if self._names[token] == choice["text"]]
                # It does not stop in the middle of a character.
                whole = {token for token in same if not _is_cut(self._vocabulary.token_bytes(token))}
                possible = whole - self._vocabulary.declared_ends
            else:
                possible = set()
        except (IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "a token") from None
        return next(iter(possible)) if len(possible) == 1 else None

    def warm(self, tokens: Sequence[int], cancel: Cancel | None = None) -> None:
        known, text = self._asked(tokens, 1)
        if known:
            self._ask(text, cancel)

    def tokenize(self, text: str) -> list[int] | None:
        found = ids_of(self._connection.ask("/extras/tokenize", {"input": text}))
        first = self._vocabulary.tokenize(text[:1])
        # It puts the token for the beginning of a text before it, where the model has one.
        return found[1:] if found[1:2] == first and found[:1] != first else found

    def _ask(self, text: str, cancel: Cancel | None, **more: Any) -> Any:
        body = {
            "prompt": text,
            "max_tokens": 1,
            "temperature": 0.0,
            "repeat_penalty": 1.0,
            # Of a text that ends it says nothing; what it says of the others is from before this.
            "logit_bias": {str(token): BAN for token in sorted(self._vocabulary.declared_ends)},
            **more,
        }
        try:
            return self._connection.ask(self._PATH, body, cancel)
        except Refused as error:
            if "maximum context length" in str(error):
                raise ContextFull(f"{error}; set `remote.context`") from error
            raise

    def _asked(self, tokens: Sequence[int], last: int) -> tuple[int, str]:
        """How many of the last tokens it can be asked about, and the text up to there."""
        for fewer in range(last):
            own = list(tokens[: len(tokens) - fewer])
            if self._vocabulary.beginning is not None:
                if own[:1] != [self._vocabulary.beginning]:
                    break
                own = own[1:]
            data = b"".join(self._vocabulary.texts[token] for token in own)
            try:
                text = data.decode()
            except UnicodeDecodeError:
                continue
            if text and self._vocabulary.tokenize(text, special=True) == own:
                return last - fewer, text
        return 0, ""

    def _of_prompt(self, found: Any, usage: Any, tokens: Sequence[int]) -> list[Any]:
        """What comes after each token of the prompt; empty where that cannot be told.

        It pairs tokens with the logits after them; without its first token, where that is added, with those before.
        """
        count, generated = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
        places, names = found["top_logprobs"], found["tokens"]
        shift = 0 if self._vocabulary.beginning is None else 1
        own = [self._names[token] for token in tokens[shift:]]
        right = count == len(tokens) and len(places) == len(names) == count + generated - 1
        return list(places) if right and names[: len(own)] == own[: len(names)] else []

    def _named(self, place: Mapping[str, float], best: int) -> Row:
        """The best tokens of a row, as far as their texts tell which they are."""
        ids: list[int] = []
        logprobs: list[float] = []
        for name, logprob in list(place.items())[:best]:
            token = self._tokens.get(name, -1)
            if token < 0 or (logprobs and logprob > logprobs[-1]):
                break
            ids.append(token)
            logprobs.append(logprob)
        return Row.of(ids, logprobs)

    @cached_property
    def _names(self) -> list[str]:
        """What the server calls each token: its text, without bytes of broken characters."""
        vocabulary = self._vocabulary
        return [vocabulary.token_bytes(token).decode("utf-8", "ignore") for token in range(vocabulary.size)]

    @cached_property
    def _tokens(self) -> dict[str, int]:
        """The token of every name; -1 where several have it."""
        found: dict[str, int] = {}
        for token, name in enumerate(self._names):
            found[name] = -1 if name in found else token
        return found


def _is_cut(data: bytes) -> bool:
    """Whether the last character of a text lacks bytes."""
    return any(
        data[-place:][:1] >= bytes([least]) for place, least in ((1, 0xC0), (2, 0xE0), (3, 0xF0)) if len(data) >= place
    )
