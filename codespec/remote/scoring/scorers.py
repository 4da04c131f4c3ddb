"""How each engine is asked what comes after the last tokens of a text, and how its answer is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from codespec.llama.model import LlamaVocabulary
from codespec.protocols import Cancel
from codespec.remote.connection import Connection
from codespec.remote.errors import Away, Refused
from codespec.remote.scoring.rows import Row, best_of

PROMPT_COST = 250
"""What one more prompt costs vLLM, where a token that it reads anew costs 6, and each of the best that it names with it
1: measured with a small model on a CPU, where Python takes most of the time."""

MOST_ALLOWED = 32_768
"""Tokens that a request names at most: it has about 200 KB then."""

_Named = list[tuple[int, float]]


class Scorer:
    """One engine, with one model.

    Args:
        connection: to the engine.
        model: its name there; empty: the first that the engine names.
        vocabulary: of the model.

    Raises:
        Away, Refused: the engine does not answer, or not as it should.

    Attributes:
        kind: of the engine, as in the settings.
        best: how many tokens a row names.
        more: how many it may name where those leave a token undecided, ascending.
        length: tokens of the engine's context; 0 is not known.
    """

    kind = ""
    best = 20
    more: tuple[int, ...] = ()

    def __init__(self, connection: Connection, model: str, vocabulary: LlamaVocabulary) -> None:
        self._connection, self._vocabulary = connection, vocabulary
        self.length = 0
        self.model = model
        self._look(model)

    def score(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None = None) -> list[Row]:
        """What comes after each of the last ``last`` tokens of a text; one request.

        Raises:
            Aborted: ``cancel`` was set.
            Away, Refused: there is no answer, or none that can be read.
        """
        raise NotImplementedError

    def among(self, tokens: Sequence[int], ids: Sequence[int], cancel: Cancel | None = None) -> Row | None:
        """The log-probabilities of these tokens after a text, whatever their ranks; None: the engine does not tell.

        Raises:
            Aborted, Away, Refused: as ``score``.
        """
        return None

    def best_among(self, tokens: Sequence[int], ids: Sequence[int], cancel: Cancel | None = None) -> int | None:
        """The likeliest of these tokens after a text; None: the engine does not tell.

        Raises:
            Aborted, Away, Refused: as ``score``.
        """
        return None

    def warm(self, tokens: Sequence[int], cancel: Cancel | None = None) -> None:
        """Let the engine read a text, so that it has that in its cache.

        Raises:
            Aborted, Away, Refused: as ``score``.
        """
        raise NotImplementedError

    def tokenize(self, text: str) -> list[int] | None:
        """The tokens of a text, names of special ones included; None: the engine does not tell.

        Raises:
            Away, Refused: as ``score``.
        """
        raise NotImplementedError

    def _look(self, model: str) -> None:
        """The model's name and the length of its context, where the engine tells."""
        answer = self._connection.get("/v1/models")
        try:
            models = {str(each["id"]): each for each in answer["data"]}
        except (TypeError, KeyError):
            raise Refused(f"{self._host} names no models at /v1/models; check `remote.url` and `remote.kind`") from None
        if not models or (model and model not in models):
            named = ", ".join(models) or "none"
            raise Refused(f"{self._host} has no model {model!r}, but {named}; check `remote.model`")
        self.model = model or next(iter(models))
        with suppress(KeyError, TypeError, ValueError):
            self.length = int(models[self.model]["max_model_len"])

    @property
    def _host(self) -> str:
        return self._connection.address.host

    def _row(self, named: _Named, best: int) -> Row:
        return best_of(named, best, self._vocabulary.size)

    def _unread(self, path: str, what: str) -> Away:
        return Away(f"{self._host} answered {path} without {what}; is `remote.kind` = {self.kind} right?")


def ids_of(answer: Any) -> list[int]:
    """The tokens in an answer.

    Raises:
        ValueError: there are none.
    """
    try:
        return [int(each) for each in answer["tokens"]]
    except (KeyError, TypeError) as error:
        raise ValueError("no tokens") from error


class VllmScorer(Scorer):
    """vLLM: ``/v1/completions`` with token ids (``entrypoints/openai/completion/protocol.py``).

    ``logprobs`` are those of the one token that it generates, and what it has in its prefix cache is not read again. Of
    a short text ``prompt_logprobs`` tell all rows at once; but where they are wanted it reads the text anew, and tells
    those of every token. So a longer text is asked about as several prompts of one request, one for each row.
    """

    kind = "vllm"
    _PATH = "/v1/completions"

    def __init__(self, connection: Connection, model: str, vocabulary: LlamaVocabulary) -> None:
        super().__init__(connection, model, vocabulary)
        self.more = (200, 5000)  # its own limit is 20, unless --max-logprobs says otherwise

    def score(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None = None) -> list[Row]:
        at_once = last > 1 and len(tokens) * (6 + best) <= PROMPT_COST * last
        try:
            rows = self._at_once(tokens, last, best, cancel) if at_once else self._each(tokens, last, best, cancel)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "log-probabilities") from None
        if len(rows) != last:
            raise self._unread(self._PATH, f"{last} places")
        return [self._row(row, best) for row in rows]

    def _at_once(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None) -> list[_Named]:
        [choice] = self._ask(list(tokens), cancel, logprobs=best, prompt_logprobs=best)
        places = choice["prompt_logprobs"][len(tokens) - last + 1 :]
        rows = [[(int(token), float(each["logprob"])) for token, each in place.items()] for place in places]
        return [*rows, _of_output(choice)]

    def _each(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None) -> list[_Named]:
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
        self._ask(list(tokens), cancel)

    def tokenize(self, text: str) -> list[int] | None:
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        with suppress(Refused, ValueError):  # it is no part of the OpenAI API, which proxies may let through alone
            return ids_of(self._connection.ask("/tokenize", body))
        choices = self._ask(text, None, return_token_ids=True, add_special_tokens=False)
        found = choices[0].get("prompt_token_ids") if choices else None
        return [int(each) for each in found] if isinstance(found, list) else None

    def _ask(self, prompt: list[int] | list[list[int]] | str, cancel: Cancel | None, **more: Any) -> list[Any]:
        body = {
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
        answer = self._connection.ask(self._PATH, body, cancel)
        try:
            return list(answer["choices"])
        except (KeyError, TypeError):
            raise self._unread(self._PATH, "a choice") from None


class SglangScorer(Scorer):
    """SGLang: ``/generate`` with token ids (``managers/io_struct.py``, ``managers/scheduler_output_processor``).

    The prefix cache serves up to ``logprob_start_len``. What it says of the input is about the tokens from there on, of
    the first of which nothing is said; what comes after the last one is said of the output.
    """

    kind = "sglang"
    best = 48
    more = (1024,)
    _PATH = "/generate"

    def score(self, tokens: Sequence[int], last: int, best: int, cancel: Cancel | None = None) -> list[Row]:
        start = len(tokens) - last if last > 1 else -1
        about = self._ask(tokens, cancel, return_logprob=True, logprob_start_len=start, top_logprobs_num=best)
        try:
            places = about["input_top_logprobs"][1:] if last > 1 else []
            rows = [_pairs(place) for place in (*places, about["output_top_logprobs"][0])]
        except (IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "log-probabilities") from None
        if len(rows) != last:
            raise self._unread(self._PATH, f"{last} places")
        return [self._row(row, best) for row in rows]

    def among(self, tokens: Sequence[int], ids: Sequence[int], cancel: Cancel | None = None) -> Row | None:
        if len(ids) > MOST_ALLOWED:
            return None
        more = {"return_logprob": True, "logprob_start_len": -1, "token_ids_logprob": list(ids)}
        try:
            about = self._ask(tokens, cancel, **more)
            row = self._row(_pairs(about["output_token_ids_logprobs"][0]), len(ids))
        except Refused:
            return None
        except (IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "log-probabilities") from None
        return row if len(row.ids) == len(set(ids)) else None

    def warm(self, tokens: Sequence[int], cancel: Cancel | None = None) -> None:
        self._ask(tokens, cancel)

    def tokenize(self, text: str) -> list[int] | None:
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        with suppress(Refused, ValueError):  # older versions do not have it
            return ids_of(self._connection.ask("/tokenize", body))
        about = self._ask(text, None, return_logprob=True, logprob_start_len=0)
        with suppress(KeyError, TypeError, ValueError):
            found = [int(token) for _, token, *_ in about["input_token_logprobs"]]
            return found[1:] if found[:1] == [self._vocabulary.beginning] else found
        return None

    def _ask(self, prompt: Sequence[int] | str, cancel: Cancel | None, **more: Any) -> Any:
        given = {"text": prompt} if isinstance(prompt, str) else {"input_ids": list(prompt)}
        sampling = {"max_new_tokens": 1, "temperature": 0, "ignore_eos": True}
        body = {**given, "sampling_params": sampling, **more}
        answer = self._connection.ask(self._PATH, body, cancel)
        try:
            return answer["meta_info"]
        except (KeyError, TypeError):
            raise self._unread(self._PATH, "meta_info") from None


def _pairs(place: Any) -> _Named:
    return [(int(token), float(logprob)) for logprob, token, *_ in place]


def _of_output(choice: Any) -> _Named:
    """vLLM's log-probabilities of the token that it generated."""
    return [(_token_of(name), float(value)) for name, value in choice["logprobs"]["top_logprobs"][0].items()]


def _token_of(name: str) -> int:
    """The token of a name such as ``token_id:17``."""
    return int(name.removeprefix("token_id:"))
