"""llama.cpp's own speculation over the same prompts: ``llama-server``, ``llama-speculative-simple``, ``llama-lookup``.

Options and output are those of the llama.cpp of October 2026 (llama-cpp-python 0.3.36). What a tool times differs:
the server and ``llama-lookup`` get their first token from the prefill, ``llama-speculative-simple`` decodes the last
token of the prompt on the clock. ``PeerResult.decoded`` is the number of tokens that the time is for, so compare
``ms_per_token``. The tools may also write more tokens than asked for: compare texts up to the shorter one, and leave
room in the context for 64 tokens more, or ``ngram-mod`` with its defaults aborts.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.llama_server import Server
from codespec.llama.model import LlamaVocabulary
from codespec.llama.runtime import library

SERVER, SIMPLE, LOOKUP = "llama-server", "llama-speculative-simple", "llama-lookup"
SAMPLERS = ("top_k", "top_p", "min_p", "temperature")


@dataclass(frozen=True)
class PeerPrompt:
    """The same prompt twice: for the server, and for tools that read text (special tokens written out)."""

    tokens: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class PeerOptions:
    """What all tools are asked to do alike.

    Attributes:
        temperature: 0 is greedy, and leaves one token to choose from whatever ``top_k`` is.
        grammar: GBNF.
        context: in tokens; 0 is what the model was trained with.
        threads, draft_threads: 0 is all CPUs.
        spin_count: ``GOMP_SPINCOUNT`` of the tools, None for their own default, which spins without bound.
        states: a folder where the server's KV caches of prompts are kept, so that a prompt is read once for all its
            settings (reading is not in the figures); None: it is read each time.
        timeout: seconds for one prompt, and for the server to load.
    """

    n_predict: int = 64
    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int = 1
    ignore_eos: bool = False
    grammar: str | None = None
    context: int = 0
    threads: int = 0
    draft_threads: int = 0
    spin_count: int | None = 20_000
    states: Path | None = None
    timeout: float = 300.0


@dataclass(frozen=True)
class PeerSetting:
    """One way to run one tool; settings of a ``mode`` differ in their parameters only."""

    mode: str
    name: str
    program: str
    arguments: tuple[str, ...] = ()
    needs_draft: bool = False


@dataclass(frozen=True)
class PeerResult:
    """One prompt; all figures are 0 where there is an ``error``.

    Attributes:
        tokens: generated.
        decoded: tokens that ``decode_ms`` is for.
        ids: of the generated tokens, where the tool gives them.
    """

    error: str | None = None
    tokens: int = 0
    decoded: int = 0
    decode_ms: float = 0.0
    drafted: int = 0
    accepted: int = 0
    text: str = ""
    ids: tuple[int, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """The figures, or the error alone."""
        if self.error is not None:
            return {"error": self.error}
        names = ("tokens", "decoded", "decode_ms", "drafted", "accepted", "text", "ids")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class SettingResult:
    """A setting over all prompts, in their order."""

    setting: PeerSetting
    results: tuple[PeerResult, ...]

    @property
    def complete(self) -> bool:
        """No prompt failed."""
        return all(result.error is None for result in self.results)

    @property
    def total_ms(self) -> float:
        """Of all prompts; comparable between settings that write equally many tokens."""
        return sum(result.decode_ms for result in self.results)

    @property
    def ms_per_token(self) -> float:
        """Prefill excluded; infinite where nothing was decoded."""
        decoded = sum(result.decoded for result in self.results)
        return self.total_ms / decoded if decoded else float("inf")

    @property
    def acceptance(self) -> float | None:
        """Share of the drafted tokens; None where nothing was drafted."""
        drafted = sum(result.drafted for result in self.results)
        return sum(result.accepted for result in self.results) / drafted if drafted else None

    def as_json(self) -> dict[str, Any]:
        """For a benchmark's file."""
        figures: dict[str, Any] = {"mode": self.setting.mode, "name": self.setting.name}
        figures |= {"program": self.setting.program, "arguments": list(self.setting.arguments)}
        if any(result.decoded for result in self.results):
            figures |= {"ms_per_token": round(self.ms_per_token, 3), "acceptance": self.acceptance}
        return {**figures, "results": [result.as_json() for result in self.results]}


def default_settings(draft: bool = True) -> list[PeerSetting]:
    """The server without speculation first, then a small sweep of everything; ``draft``: with a draft model."""
    found = [PeerSetting("server plain", "plain", SERVER)]
    for program, mode in ((SERVER, "server"), (SIMPLE, "simple")):
        if draft:
            found += _with_draft(program, mode)
        found += _with_ngrams(program, mode)
    for length in (2, 3, 4, 7):
        found.append(PeerSetting("lookup", f"n-max {length}", LOOKUP, ("--spec-draft-n-max", str(length))))
    return found


def _with_draft(program: str, mode: str) -> Iterable[PeerSetting]:
    # With the token before it a proposal of 3, 7 or 15 makes the 4, 8 or 16 rows that kernels like best.
    for length, least in ((1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (7, 0.0), (3, 0.6), (7, 0.6), (15, 0.75)):
        arguments = ("--spec-type", "draft-simple", "--spec-draft-n-max", str(length), "--spec-draft-p-min", str(least))
        name = f"n-max {length}, p-min {least}"
        yield PeerSetting(f"{mode} draft", name, program, arguments, needs_draft=True)
        if program == SERVER and (length, least) == (3, 0.0):
            flash = (*arguments, "--flash-attn", "on")
            yield PeerSetting(f"{mode} draft", f"{name}, flash-attn", program, flash, needs_draft=True)


def _with_ngrams(program: str, mode: str) -> Iterable[PeerSetting]:
    # The first of each kind are llama.cpp's defaults, made for long answers that copy from long prompts.
    for match, least, most in ((24, 48, 64), (16, 4, 15), (8, 2, 7)):
        values = {"n-match": match, "n-min": least, "n-max": most}
        yield _ngram(program, mode, "ngram-mod", values)
    for key, value in ((12, 48), (4, 7)):
        for kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v"):
            yield _ngram(program, mode, kind, {"size-n": key, "size-m": value})
    yield _ngram(program, mode, "ngram-cache", {})


def _ngram(program: str, mode: str, kind: str, values: dict[str, int]) -> PeerSetting:
    arguments = ["--spec-type", kind]
    for name, value in values.items():
        arguments += [f"--spec-{kind}-{name}", str(value)]
    name = ", ".join(f"{name} {value}" for name, value in values.items()) or "default"
    return PeerSetting(f"{mode} {kind}", name, program, tuple(arguments))


def prompt_of(vocabulary: LlamaVocabulary, tokens: Sequence[int]) -> PeerPrompt:
    """A prompt for all tools; they put the beginning-of-text token before a text themselves."""
    written = tokens[1:] if tokens and tokens[0] == vocabulary.beginning else tokens
    texts = [_piece(vocabulary, token) for token in written]
    return PeerPrompt(tuple(tokens), b"".join(texts).decode("utf-8", "surrogateescape"))


def _piece(vocabulary: LlamaVocabulary, token: int) -> bytes:
    if token not in vocabulary.control_tokens:
        return vocabulary.token_bytes(token)
    return bytes(library().llama_vocab_get_text(vocabulary.pointer, token))


def best(results: Iterable[SettingResult]) -> dict[str, SettingResult]:
    """The fastest setting of each mode in which no prompt failed."""
    found: dict[str, SettingResult] = {}
    for result in results:
        mode = result.setting.mode
        if result.complete and (mode not in found or result.ms_per_token < found[mode].ms_per_token):
            found[mode] = result
    return found


def measure(
    setting: PeerSetting,
    folder: Path,
    target: Path,
    prompts: Sequence[PeerPrompt],
    options: PeerOptions | None = None,
    draft: Path | None = None,
) -> SettingResult:
    """Every prompt with a setting, one after another. Never raises: what fails is an error in its place.

    The server's n-grams outlive a request, so a prompt that comes twice is answered from memory the second time: give
    each once.

    Args:
        folder: where llama.cpp's programs lie.
    """
    run = _on_server if setting.program == SERVER else _by_tool
    try:
        results = run(setting, folder, target, draft, prompts, options or PeerOptions())
    except Exception as error:  # whatever a peer does, the benchmark goes on
        results = [PeerResult(error=f"{type(error).__name__}: {str(error)[:300]}")] * len(prompts)
    return SettingResult(setting, tuple(results))


def command(setting: PeerSetting, folder: Path, target: Path, draft: Path | None, options: PeerOptions) -> list[str]:
    """The command line that all programs understand, without prompt and sampling.

    Raises:
        FileNotFoundError: no such program, or no draft where the setting needs one.
    """
    program = folder / setting.program
    if not program.is_file():
        raise FileNotFoundError(f"no {setting.program} in {folder}")
    # `-tb` counts as much as `-t`: every pass over more than one token, as verification is, runs with it.
    threads = str(options.threads or os.cpu_count() or 1)
    line = [str(program), "--model", str(target), "--threads", threads, "--threads-batch", threads]
    line += ["--flash-attn", "off"]  # as ours: on a CPU it slows short passes down
    line += ["--ctx-size", str(options.context), "--fit", "off", "--offline", "--log-colors", "off"]
    if setting.needs_draft:
        if draft is None:
            raise FileNotFoundError("no draft model was given")
        threads = str(options.draft_threads or os.cpu_count() or 1)
        line += ["--spec-draft-model", str(draft)]
        line += ["--spec-draft-threads", threads, "--spec-draft-threads-batch", threads]
    return [*line, *setting.arguments]


def environment(spin_count: int | None) -> dict[str, str]:
    """This process's, without what would set llama.cpp's options or OpenMP's waiting behind our back."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LLAMA_", "GOMP_", "OMP_"))}
    kept["GGML_NO_BACKTRACE"] = "1"  # a debugger's output after the reason of an abort hides it
    return kept if spin_count is None else {**kept, "GOMP_SPINCOUNT": str(spin_count)}


def _on_server(
    setting: PeerSetting, folder: Path, target: Path, draft: Path | None, prompts: Sequence[PeerPrompt],
    options: PeerOptions,
) -> list[PeerResult]:  # fmt: skip
    line = command(setting, folder, target, draft, options)
    line += ["--parallel", "1", "--cache-ram", "0", "--no-ui", "--no-warmup"]
    if options.states is not None:
        layout = options.states / ("flash" if "--flash-attn" in setting.arguments else "plain")
        layout.mkdir(exist_ok=True)
        line += ["--slot-save-path", str(layout)]
    # The draft model's KV cache does not follow where the target's is restored: a server for each prompt then.
    groups = [[each] for each in prompts] if setting.needs_draft and options.states is not None else [prompts]
    found = []
    for group in groups:
        with Server(line, environment(options.spin_count), options.timeout) as server:
            found += [_ask(server, prompt, options) for prompt in group]
    return found


def _ask(server: Server, prompt: PeerPrompt, options: PeerOptions) -> PeerResult:
    try:
        if options.states is not None:
            _bring_to(server, prompt, options)
        return parse_answer(server.ask("/completion", request(prompt, options)), prompt)
    except Exception as error:
        return PeerResult(error=f"{type(error).__name__}: {str(error)[:300]}")


def _bring_to(server: Server, prompt: PeerPrompt, options: PeerOptions) -> None:
    """Fill the server's KV cache with a prompt, from a file if it was read before."""
    name = {"filename": hashlib.sha256(repr(prompt.tokens).encode()).hexdigest()}
    try:
        server.ask("/slots/0?action=restore", name)
    except RuntimeError:  # not read yet
        server.ask("/completion", {**request(prompt, options), "n_predict": 0})
        server.ask("/slots/0?action=save", name)


def request(prompt: PeerPrompt, options: PeerOptions) -> dict[str, Any]:
    """The body of a request to the server's ``/completion``."""
    body: dict[str, Any] = {
        "prompt": list(prompt.tokens),
        "n_predict": options.n_predict,
        "samplers": list(SAMPLERS),
        "temperature": options.temperature,
        "top_k": options.top_k if options.temperature else 1,
        "top_p": options.top_p,
        "min_p": options.min_p,
        "seed": options.seed,
        "ignore_eos": options.ignore_eos,
        "cache_prompt": options.states is not None,
        "return_tokens": True,
    }
    return body if options.grammar is None else {**body, "grammar": options.grammar}


def parse_answer(answer: dict[str, Any], prompt: PeerPrompt) -> PeerResult:
    """A result from the server's answer; an error if it read another prompt than was meant."""
    seen = answer["tokens_evaluated"]
    if seen != len(prompt.tokens):
        return PeerResult(error=f"the prompt became {seen} tokens, not {len(prompt.tokens)}")
    timings = answer["timings"]
    return PeerResult(
        tokens=timings["predicted_n"],
        decoded=max(0, timings["predicted_n"] - 1),
        decode_ms=timings["predicted_ms"],
        drafted=timings.get("draft_n", 0),
        accepted=timings.get("draft_n_accepted", 0),
        text=answer["content"],
        ids=tuple(answer["tokens"]),
    )


def _by_tool(
    setting: PeerSetting, folder: Path, target: Path, draft: Path | None, prompts: Sequence[PeerPrompt],
    options: PeerOptions,
) -> list[PeerResult]:  # fmt: skip
    line = [*command(setting, folder, target, draft, options), *_sampling(options)]
    with tempfile.TemporaryDirectory(prefix="codespec-peers-") as scratch:
        text, grammar = Path(scratch, "prompt.txt"), Path(scratch, "grammar.gbnf")
        if options.grammar is not None:
            grammar.write_text(options.grammar, "utf-8")
            line += ["--grammar-file", str(grammar)]
        line += ["--file", str(text), "--no-escape"]
        found = []
        for prompt in prompts:
            # One newline at the end of the file is dropped by the tools.
            text.write_bytes(prompt.text.encode("utf-8", "surrogateescape") + b"\n")
            result = _run_tool(line, setting, prompt, options)
            if result.error == NO_REPORT:  # a tool now and then ends before its log is out
                result = _run_tool(line, setting, prompt, options)
            found.append(result)
        return found


def _sampling(options: PeerOptions) -> list[str]:
    line = ["--predict", str(options.n_predict), "--seed", str(options.seed), "--samplers", ";".join(SAMPLERS)]
    line += ["--temp", str(options.temperature), "--top-k", str(options.top_k if options.temperature else 1)]
    line += ["--top-p", str(options.top_p), "--min-p", str(options.min_p)]
    return [*line, "--ignore-eos"] if options.ignore_eos else line


def _run_tool(line: list[str], setting: PeerSetting, prompt: PeerPrompt, options: PeerOptions) -> PeerResult:
    try:
        child = subprocess.run(
            line, stdin=subprocess.DEVNULL, capture_output=True, timeout=options.timeout, check=False,
            env=environment(options.spin_count),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return PeerResult(error=f"more than {options.timeout:g} s")
    log = child.stderr.decode("utf-8", "replace")
    if child.returncode != 0:
        lines = log.strip().splitlines() or ["no message"]
        return PeerResult(error=f"ended with status {child.returncode}: {lines[-1][:300]}")
    return parse_tool(child.stdout, log, prompt, first_is_free=setting.program == LOOKUP)


NO_REPORT = "no figures in its output"
_FIGURES = {
    "prompt": r"encoded\s+(\d+) tokens",
    "tokens": r"decoded\s+(\d+) tokens",
    "speed": r"decoded.*speed:\s+([\d.]+) t/s",
    "drafted": r"n_drafted\s*=\s*(\d+)",
    "accepted": r"n_accept\s*=\s*(\d+)",
}


def parse_tool(output: bytes, log: str, prompt: PeerPrompt, first_is_free: bool) -> PeerResult:
    """A result from what ``llama-speculative-simple`` or ``llama-lookup`` print; an error if there is none.

    An end token is part of the text with ``llama-lookup`` alone.

    Args:
        output: prompt and text.
        log: figures; the time is in whole milliseconds, the speed more exact.
        first_is_free: the prefill gave the first token.
    """
    found = {name: re.search(pattern, log) for name, pattern in _FIGURES.items()}
    values = {name: float(match[1]) for name, match in found.items() if match}
    if len(values) < len(_FIGURES) or not values["speed"]:
        return PeerResult(error=NO_REPORT)
    if values["prompt"] != len(prompt.tokens):
        return PeerResult(error=f"the prompt's text became {values['prompt']:.0f} tokens, not {len(prompt.tokens)}")
    _, shown, text = output.partition(prompt.text.encode("utf-8", "surrogateescape"))
    if not shown:
        return PeerResult(error="it read another prompt than was meant")
    tokens = int(values["tokens"])
    result = PeerResult(tokens=tokens, decoded=tokens, decode_ms=tokens / values["speed"] * 1e3)
    return replace(
        result,
        decoded=max(0, tokens - 1) if first_is_free else tokens,
        drafted=int(values["drafted"]),
        accepted=int(values["accepted"]),
        text=text.removesuffix(b"\n\n\n\n").decode("utf-8", "replace"),
    )
