"""llama.cpp's own grammar sampler, to compare ours with.

It aborts the process when it is fed a token that the grammar forbids, and it dies on some grammars, so it runs
in a child process, and every token is tried with a one-token ``apply`` before it is accepted. For tests and
``doctor`` only: a mask costs milliseconds.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MEMORY = 4 << 30  # bytes of address space of the child; "a"{3,1} would take all there is


@dataclass(frozen=True)
class Verdict:
    """What llama.cpp says of one text.

    Attributes:
        complete: the grammar may end here.
        refused_at: index of the first refused character; None where the text is a viable prefix.
    """

    complete: bool
    refused_at: int | None


@dataclass(frozen=True)
class Failure:
    """llama.cpp gave no verdict: it refused the grammar, died, or took too long; ``reason`` says which."""

    reason: str


Case = tuple[str, Sequence[str]]
"""A GBNF text and the texts to judge."""


def judge(cases: Iterable[Case], vocabulary: Path, timeout: float = 60.0) -> list[list[Verdict] | Failure]:
    """What llama.cpp's grammar sampler says of the texts of each case, in order.

    Args:
        cases: one failing case does not touch the others.
        vocabulary: a GGUF whose vocabulary has a token for each byte; weights are not loaded.
        timeout: seconds for the whole batch; cases not judged by then are failures.
    """
    todo = list(cases)
    results: list[list[Verdict] | Failure] = []
    while len(results) < len(todo):
        batch = todo[len(results) :]
        request = json.dumps({"vocabulary": str(vocabulary), "cases": batch})
        try:
            child = subprocess.run(
                [sys.executable, "-m", __name__],
                input=request.encode(),
                capture_output=True,
                timeout=timeout,
                check=False,
                env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # a debugger would take seconds, and write to the output
            )
            output, errors, code = child.stdout, child.stderr, child.returncode
            reason = f"llama.cpp died with status {code}: {_last_line(errors)}"
        except subprocess.TimeoutExpired as expired:
            output = expired.stdout or b""
            reason = f"llama.cpp took more than {timeout:g} s"
        answers = [json.loads(line) for line in output.decode().splitlines() if line.endswith("]")]
        results += [
            [Verdict(*verdict) for verdict in answer[0]] if answer[0] is not None else Failure(answer[1])
            for answer in answers[: len(batch)]
        ]
        if len(answers) < len(batch):
            results.append(Failure(reason))
            timeout = min(timeout, 10.0)
    return results


def _last_line(errors: bytes) -> str:
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


# --- in the child ---------------------------------------------------------------------------------------


def main() -> None:
    """Read one request from standard input; write one line per case."""
    _limit_memory()
    from codespec.llama.runtime import library

    request = json.load(sys.stdin)
    api = library()
    parameters = api.llama_model_default_params()
    parameters.vocab_only = True
    model = api.llama_model_load_from_file(request["vocabulary"].encode(), parameters)
    if not model:
        sys.exit(f"{request['vocabulary']}: not a model")
    vocab = api.llama_model_get_vocab(model)
    tokens = _byte_tokens(api, vocab)
    for grammar, texts in request["cases"]:
        print(json.dumps(_judge(api, vocab, tokens, grammar, texts)), flush=True)


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _byte_tokens(api: Any, vocab: Any) -> dict[int, int]:
    """For each byte a token that is just that byte; for -1 an end token."""
    found: dict[int, int] = {}
    buffer = ctypes.create_string_buffer(8)
    for token in range(api.llama_vocab_n_tokens(vocab)):
        if api.llama_vocab_is_eog(vocab, token):
            found.setdefault(-1, token)
        elif api.llama_token_to_piece(vocab, token, buffer, 8, 0, True) == 1:
            found.setdefault(buffer.raw[0], token)
    return found


def _judge(api: Any, vocab: Any, tokens: dict[int, int], grammar: str, texts: Sequence[str]) -> list[Any]:
    fresh = api.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
    if not fresh:
        return [None, "llama.cpp refuses the grammar"]
    verdicts = []
    for text in texts:
        sampler = api.llama_sampler_clone(fresh)
        verdicts.append(_walk(api, sampler, tokens, text))
        api.llama_sampler_free(sampler)
    api.llama_sampler_free(fresh)
    return [verdicts]


def _walk(api: Any, sampler: Any, tokens: dict[int, int], text: str) -> tuple[bool, int | None]:
    for index, character in enumerate(text):
        for byte in character.encode("utf-8", "surrogatepass"):
            if byte not in tokens or not _allowed(api, sampler, tokens[byte]):
                return False, index
            api.llama_sampler_accept(sampler, tokens[byte])
    return _allowed(api, sampler, tokens[-1]), None


def _allowed(api: Any, sampler: Any, token: int) -> bool:
    candidates = (api.llama_token_data * 1)(api.llama_token_data(token, 0.0, 0.0))
    array = api.llama_token_data_array(candidates, 1, -1, False)
    api.llama_sampler_apply(sampler, ctypes.byref(array))
    return math.isfinite(candidates[0].logit)


if __name__ == "__main__":
    main()
