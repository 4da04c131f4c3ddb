"""Other grammar engines over the same tokens, each in a child process: some of them end the process on bad input."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

ENGINES = ("llama.cpp", "stock converter", "xgrammar")
TIMEOUT = 180.0
BUDGET = 15.0  # seconds for masks; a slow engine is asked at evenly spaced tokens only


def ask(engine: str, source: str, vocabulary: Path, tokens: Sequence[int]) -> dict[str, Any]:
    """The figures of an engine for a GBNF text, or ``{"error": why not}``."""
    request = json.dumps({"engine": engine, "source": source, "vocabulary": str(vocabulary), "tokens": list(tokens)})
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
    try:
        child = subprocess.run(
            [sys.executable, "-c", code], input=request.encode(), capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {TIMEOUT:g} s"}
    if child.returncode != 0:
        lines = child.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        return {"error": f"ended with status {child.returncode}: {lines[-1][:150]}"}
    answer: dict[str, Any] = json.loads(child.stdout.decode().splitlines()[-1])
    return answer


def main() -> None:
    """In the child: one request on standard input, one answer."""
    request = json.load(sys.stdin)
    makers: dict[str, Callable[[str, Any], Any]] = {
        "llama.cpp": LlamaGrammar,
        "stock converter": StockConverter,
        "xgrammar": XGrammar,
    }
    from codespec.llama.model import Model

    with Model(request["vocabulary"], vocabulary_only=True) as model:
        try:
            maker = makers[request["engine"]]
            print(json.dumps(measure(lambda: maker(request["source"], model), request["tokens"])))
        except ImportError as error:
            print(json.dumps({"error": f"not installed: {error.name}"}))
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"}))


def measure(make: Callable[[], Any], tokens: Sequence[int]) -> dict[str, Any]:
    """Walk along ``tokens``: means in microseconds."""
    engine = make()
    began = thread_time()
    engine.mask()
    once = thread_time() - began
    step = max(1, int(once * len(tokens) / BUDGET))
    masks, accepts = [], []
    taken = 0
    for index, token in enumerate(tokens):
        if index % step == 0:
            began = thread_time()
            engine.mask()
            masks.append((thread_time() - began) * 1e6)
        began = thread_time()
        if not engine.accept(token):
            break
        accepts.append((thread_time() - began) * 1e6)
        taken += 1
    copies = []
    for _ in range(20):
        began = thread_time()
        engine.copy()
        copies.append((thread_time() - began) * 1e6)
    figures = {"mask_mean": np.mean(masks), "mask_p50": np.median(masks), "mask_p99": np.quantile(masks, 0.99)}
    figures |= {"accept": np.mean(accepts or [0.0]), "copy": np.mean(copies), "compile_cold_ms": engine.compile_ms}
    refused = {} if taken == len(tokens) else {"refused_at": float(taken)}
    return {"tokens": taken, **{name: round(float(value), 2) for name, value in figures.items()}, **refused}


class LlamaGrammar:
    """llama.cpp's sampler: a mask is ``apply`` over the whole vocabulary."""

    def __init__(self, source: str, model: Any) -> None:
        from codespec.llama.runtime import library

        self.api = library()
        began = thread_time()
        self.sampler = self.api.llama_sampler_init_grammar(model.vocabulary.pointer, source.encode(), b"root")
        self.compile_ms = (thread_time() - began) * 1e3
        if not self.sampler:
            raise ValueError("llama.cpp refuses the grammar")
        size = model.vocabulary.size
        self.data = (self.api.llama_token_data * size)()
        self.view = np.ctypeslib.as_array(ctypes.cast(self.data, ctypes.POINTER(ctypes.c_uint32)), (size, 3))
        self.ids = np.arange(size, dtype=np.uint32)
        self.array = self.api.llama_token_data_array(self.data, size, -1, False)
        self.one = (self.api.llama_token_data * 1)()

    def mask(self) -> None:
        self.view[:] = 0
        self.view[:, 0] = self.ids
        self.api.llama_sampler_apply(self.sampler, ctypes.byref(self.array))

    def accept(self, token: int) -> bool:
        self.one[0] = self.api.llama_token_data(token, 0.0, 0.0)
        array = self.api.llama_token_data_array(self.one, 1, -1, False)
        self.api.llama_sampler_apply(self.sampler, ctypes.byref(array))
        if self.one[0].logit != 0.0:
            return False
        self.api.llama_sampler_accept(self.sampler, token)
        return True

    def copy(self) -> None:
        self.api.llama_sampler_free(self.api.llama_sampler_clone(self.sampler))


class StockConverter:
    """llguidance over its own ``gbnf_to_lark``: fast, and for many grammars another language."""

    def __init__(self, source: str, model: Any) -> None:
        import llguidance
        from llguidance.gbnf_to_lark import any_to_lark

        from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab

        tokenizer = tokenizer_from_vocab(model.vocabulary)
        began = thread_time()
        self.matcher = llguidance.LLMatcher(tokenizer.raw, any_to_lark(source), log_level=0)
        self.compile_ms = (thread_time() - began) * 1e3
        self.bits = np.zeros((tokenizer.size + 31) // 32, np.uint32)
        self._check()

    def mask(self) -> None:
        self.matcher.unsafe_compute_mask_ptr(self.bits.ctypes.data, self.bits.nbytes)
        self._check()

    def accept(self, token: int) -> bool:
        return bool(self.matcher.try_consume_tokens([token]) == 1)

    def copy(self) -> None:
        self.matcher.deep_copy()

    def _check(self) -> None:
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error())


class XGrammar:
    """xgrammar, which needs torch."""

    def __init__(self, source: str, model: Any) -> None:
        import xgrammar

        vocabulary = model.vocabulary
        pieces = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        info = xgrammar.TokenizerInfo(pieces, stop_token_ids=sorted(vocabulary.end_tokens))
        compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        began = thread_time()
        compiled = compiler.compile_grammar(source)
        self.compile_ms = (thread_time() - began) * 1e3
        self.matcher = xgrammar.GrammarMatcher(compiled)
        self.bitmask = xgrammar.allocate_token_bitmask(1, vocabulary.size)

    def mask(self) -> None:
        self.matcher.fill_next_token_bitmask(self.bitmask)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))

    def copy(self) -> None:
        self.matcher.fork()
