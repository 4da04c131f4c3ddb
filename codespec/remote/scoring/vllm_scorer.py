"""How vLLM is asked what comes after the last tokens of a text (``entrypoints/``, ``sampling_params.py``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from codespec.llama.model import LlamaVocabulary
from codespec.protocols import Cancel
from codespec.remote.connection import Connection
from codespec.remote.errors import Away, Refused
from codespec.remote.scoring.rows import Row
from codespec.remote.scoring.scorers import MOST_ALLOWED, Named, Scorer, ids_of
from codespec.remote.streaming.events import event

PROMPT_COST = 250
"""What one more prompt costs vLLM, where a token that it reads anew costs 6, and each of the best that it names with it
1: measured with a small model on a CPU, where Python takes most of the time."""

_NO_NUMBER = "not JSON compliant"
"""What vLLM says of rows that hold ``nan``."""


class VllmScorer(Scorer):
    """vLLM: token ids, and log-probabilities of one generated token or of the prompt's.

    - ``/inference/v1/generate`` (``--enable-scale-out``) tells all rows of one text, and may leave unread what the
      prefix cache has of it: one forward pass over the proposal, as of a target here. Its rows of the cached part are
      whatever lay in memory; how long that part was it tells with ``--enable-prompt-tokens-details`` alone.
    - ``/v1/completions`` without them: ``logprobs`` are those of the one token that it generates, and the prefix cache
      is used. Of a short text ``prompt_logprobs`` tell all rows at once; but then it reads the whole text anew. So a
      longer text is asked about as several prompts of one request, one for each row.
    """

    kind = "vllm"
    # As few as decide: it names as many of every token of the prompt, which takes most of a request's time.
    greedy = 2, 4
    _PATH, _GENERATE = "/v1/completions", "/inference/v1/generate"

    def __init__(self, connection: Connection, model: str, vocabulary: LlamaVocabulary) -> None:
        super().__init__(connection, model, vocabulary)
        self.more = (200, 5000)  # its own limit is 20, unless --max-logprobs says otherwise
        self._behind = True  # until it turns out that it does not tell how much was cached

    def score(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None = None) -> list[Row]:
        if last == 1 or not self._behind:
            return self._asked(tokens, last, best, cancel)
        behind = self._behind_cached(tokens, last, best, cancel)
        cached = last - len(behind)
        return [*(self._asked(tokens[: len(tokens) - len(behind)], cached, best, cancel) if cached else []), *behind]

    def _asked(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None) -> list[Row]:
        at_once = last > 1 and len(tokens) * (6 + best) <= PROMPT_COST * last
        try:
            rows = self._at_once(tokens, last, best, cancel) if at_once else self._each(tokens, last, best, cancel)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "log-probabilities") from None
        if len(rows) != last:
            raise self._unread(self._PATH, f"{last} places")
        return [self._row(row, best) for row in rows]

    def _behind_cached(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None) -> list[Row]:
        """The rows of one pass over what is not in the prefix cache, at most ``last``: where it has something of the
        proposal, the engine has written that itself, or somebody has asked about it."""
        sampling = {
            "max_tokens": 1,
            "temperature": 0,
            "ignore_eos": True,
            "detokenize": False,  # there are no names for what lay in memory
            "logprobs": best,
            "prompt_logprobs": best,
            "skip_reading_prefix_cache": False,
        }
        body = {"model": self.model, "token_ids": list(tokens), "sampling_params": sampling}
        try:
            answer = self._connection.ask(self._GENERATE, body, cancel)
            details = answer["usage"]["prompt_tokens_details"]
            if details is None:
                raise ValueError("it does not tell what was cached")
            first = max(len(tokens) - last, int(details["cached_tokens"] or 0))
            places = answer["prompt_logprobs"][first + 1 :]
            named = [[(int(token), float(each["logprob"])) for token, each in place.items()] for place in places]
            [after] = answer["choices"][0]["logprobs"]["content"]
            named.append([(int(each["token_id"]), float(each["logprob"])) for each in after["top_logprobs"]])
        except Away:  # a request in another way tells
            return []
        except (Refused, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # What lay in memory was perhaps no number, which JSON has no word for: the next time it may be one.
            self._behind = _NO_NUMBER in str(error)
            return []
        return [self._row(row, best) for row in named] if len(named) == len(tokens) - first else []

    @contextmanager
    def follow(
        self, tokens: Sequence[int], most: int, best: int, cancel: Cancel | None = None
    ) -> Iterator[Iterator[tuple[int, Row]]]:
        body = self._body(list(tokens), stream=True, max_tokens=most, logprobs=best)
        with self._connection.stream(self._PATH, body, cancel) as lines:
            yield self._followed(lines, best)

    def _followed(self, lines: Iterator[bytes], best: int) -> Iterator[tuple[int, Row]]:
        try:
            for choices in (found["choices"] for line in lines if (found := event(line, self._host))):
                for told in (choice["logprobs"] for choice in choices):
                    for name, place in zip(told["tokens"], told["top_logprobs"], strict=True):
                        row = [(_token_of(each), float(value)) for each, value in place.items()]
                        yield _token_of(name), self._row(row, best)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "log-probabilities") from None

    def _at_once(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None) -> list[Named]:
        [choice] = self._ask(list(tokens), cancel, logprobs=best, prompt_logprobs=best)
        places = choice["prompt_logprobs"][len(tokens) - last + 1 :]
        rows = [[(int(token), float(each["logprob"])) for token, each in place.items()] for place in places]
        return [*rows, _of_output(choice)]

    def _each(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None) -> list[Named]:
        prompts = [list(tokens[:end]) for end in range(len(tokens) - last + 1, len(tokens) + 1)]
        choices = self._ask(prompts if last > 1 else prompts[0], cancel, logprobs=best)
        found = {int(choice["index"]): _of_output(choice) for choice in choices}
        return [found[place] for place in range(last)]

    def best_among(self, tokens: Sequence[int], ids: Sequence[int], cancel: Cancel | None = None) -> int | None:
        if len(ids) > MOST_ALLOWED:
            return None
        try:
            [choice] = self._ask(list(tokens), cancel, logprobs=1, allowed_token_ids=list(ids))
            token = _token_of(choice["logprobs"]["tokens"][0])
        except Refused:  # another version, or a proxy that wants short requests
            return None
        except (IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "a token") from None
        return token if token in ids else None

    def warm(self, tokens: Sequence[int], cancel: Cancel | None = None) -> None:
        # Of a text that it has whole it reads the last token again, and what is known of that is wanted.
        self._ask(list(tokens[:-1] or tokens), cancel)

    def tokenize(self, text: str) -> list[int] | None:
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        with suppress(Refused, ValueError):  # it is no part of the OpenAI API, which proxies may let through alone
            return ids_of(self._connection.ask("/tokenize", body))
        choices = self._ask(text, None, return_token_ids=True, add_special_tokens=False)
        found = choices[0].get("prompt_token_ids") if choices else None
        return [int(each) for each in found] if isinstance(found, list) else None

    def _body(self, prompt: list[int] | list[list[int]] | str, **more: Any) -> dict[str, Any]:
        return {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": 1,
            # Greedy, whatever the model's own defaults are.
            "temperature": 0,
            "repetition_penalty": 1.0,
            "ignore_eos": True,
            "return_tokens_as_token_ids": True,
            **more,
        }

    def _ask(self, prompt: list[int] | list[list[int]] | str, cancel: Cancel | None, **more: Any) -> list[Any]:
        answer = self._connection.ask(self._PATH, self._body(prompt, **more), cancel)
        try:
            return list(answer["choices"])
        except (KeyError, TypeError):
            raise self._unread(self._PATH, "a choice") from None


def _of_output(choice: Any) -> Named:
    """vLLM's log-probabilities of the token that it generated."""
    return [(_token_of(name), float(value)) for name, value in choice["logprobs"]["top_logprobs"][0].items()]


def _token_of(name: str) -> int:
    """The token of a name such as ``token_id:17``."""
    return int(name.removeprefix("token_id:"))
