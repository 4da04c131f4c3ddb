"""How each engine is asked what comes after the last tokens of a text, and how its answer is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from codespec.llama.model import LlamaVocabulary
from codespec.protocols import Cancel
from codespec.remote.connection import Connection
from codespec.remote.errors import Away, Refused
from codespec.remote.scoring.rows import Row, best_of
from codespec.remote.streaming.events import event

MOST_ALLOWED = 32_768
"""Tokens that a request names at most: it has about 200 KB then."""

Named = list[tuple[int, float]]


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
        greedy: the same where the likeliest token is taken: of a free text, and under a grammar, which refuses some.
        more: how many it may name where those leave a token undecided, ascending.
        length: tokens of the engine's context; 0 is not known.
    """

    kind = ""
    best = 20
    greedy = 6, 12
    more: tuple[int, ...] = ()

    def __init__(self, connection: Connection, model: str, vocabulary: LlamaVocabulary) -> None:
        self._connection, self._vocabulary = connection, vocabulary
        connection.leaving.token_bytes = vocabulary.token_bytes
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

    def follow(
        self, tokens: Sequence[int], most: int, best: int, cancel: Cancel | None = None
    ) -> AbstractContextManager[Iterator[tuple[int, Row]]]:
        """The engine's own greedy text after another, as it comes: each token, and the row that it was chosen from.

        To leave the block ends the request.

        Raises:
            Aborted, Away, Refused: as ``score``, while iterating, too.
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

    def _row(self, named: Named, best: int) -> Row:
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

    @contextmanager
    def follow(
        self, tokens: Sequence[int], most: int, best: int, cancel: Cancel | None = None
    ) -> Iterator[Iterator[tuple[int, Row]]]:
        more = {"return_logprob": True, "logprob_start_len": -1, "top_logprobs_num": best, "stream": True}
        with self._connection.stream(self._PATH, self._body(tokens, most, **more), cancel) as lines:
            yield self._followed(lines, best)

    def _followed(self, lines: Iterator[bytes], best: int) -> Iterator[tuple[int, Row]]:
        seen = 0
        try:
            for about in (found["meta_info"] for line in lines if (found := event(line, self._host))):
                new = int(about["completion_tokens"]) - seen
                # Some versions name all tokens so far, others the new ones.
                chosen, places = about["output_token_logprobs"][-new:], about["output_top_logprobs"][-new:]
                for (_, token, *_), place in zip(chosen, places, strict=True) if new > 0 else ():
                    yield int(token), self._row(_pairs(place), best)
                seen += new
        except (IndexError, KeyError, TypeError, ValueError):
            raise self._unread(self._PATH, "log-probabilities") from None

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

    def _body(self, prompt: Sequence[int] | str, tokens: int, **more: Any) -> dict[str, Any]:
        given = {"text": prompt} if isinstance(prompt, str) else {"input_ids": list(prompt)}
        return {**given, "sampling_params": {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}, **more}

    def _ask(self, prompt: Sequence[int] | str, cancel: Cancel | None, **more: Any) -> Any:
        answer = self._connection.ask(self._PATH, self._body(prompt, 1, **more), cancel)
        try:
            return answer["meta_info"]
        except (KeyError, TypeError):
            raise self._unread(self._PATH, "meta_info") from None


def _pairs(place: Any) -> Named:
    return [(int(token), float(logprob)) for logprob, token, *_ in place]
