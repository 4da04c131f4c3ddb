"""llama.cpp's own speculation beside ours in one run of ``python -m benchmarks decode``: same prompts, same machine."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.decode.decode import Bench, Measured, Options, bootstrap, per_token
from benchmarks.decode.llama_cpp import (
    SERVER,
    PeerOptions,
    PeerResult,
    PeerSetting,
    SettingResult,
    best,
    default_settings,
    measure,
    prompt_of,
)
from benchmarks.disturbance import Disturbance
from codespec.cli.show import text_of
from codespec.grammar.grammar import PLAIN as PLAIN_GRAMMARS
from codespec.grammar.library import shipped
from codespec.protocols import CodespecError

PLAIN = "server plain"
"""The mode without speculation."""

ROUNDS = 3
"""Times that the fastest setting is run again in alternation with ours."""

SPARE = 64  # rows of the context that the tools want beyond prompt and text

FEW = frozenset(
    {
        ("server plain", "plain"),
        ("server draft", "n-max 1, p-min 0.0"),
        ("server draft", "n-max 2, p-min 0.0"),
        ("server draft", "n-max 3, p-min 0.0"),
        ("server draft", "n-max 3, p-min 0.0, flash-attn"),
        ("server draft", "n-max 4, p-min 0.0"),
        ("server draft", "n-max 7, p-min 0.0"),
        ("server draft", "n-max 7, p-min 0.6"),
        ("server draft", "n-max 15, p-min 0.75"),
        ("simple draft", "n-max 3, p-min 0.0"),
        ("server ngram-mod", "n-match 16, n-min 4, n-max 15"),
        ("server ngram-mod", "n-match 8, n-min 2, n-max 7"),
        ("server ngram-simple", "size-n 4, size-m 7"),
        ("server ngram-map-k", "size-n 4, size-m 7"),
        ("server ngram-cache", "default"),
        ("lookup", "n-max 3"),
        ("lookup", "n-max 7"),
    }
)
"""Mode and name of the settings that ``--peer-settings few`` keeps."""


@dataclass(frozen=True)
class Peers:
    """What to run: the programs in ``folder``, with every setting or a ``few``."""

    folder: Path
    few: bool

    @classmethod
    def checked(cls, folder: Path, few: bool, options: Options) -> Peers:
        """The same, if it can be.

        Raises:
            CodespecError: no programs there, or times that nothing can be compared with.
        """
        if not (folder / SERVER).is_file():
            raise CodespecError(
                f"--peers {folder}: no {SERVER} there; give the folder that llama.cpp's programs were built into, "
                "such as llama.cpp/build/bin"
            )
        if options.curve is not None:
            raise CodespecError("--peers takes real time and --costs modelled time; leave one of them out")
        return cls(folder, few)

    def settings(self, draft: bool) -> list[PeerSetting]:
        """In the order that they run in."""
        found = default_settings(draft)
        return [each for each in found if (each.mode, each.name) in FEW] if self.few else found


def compare(bench: Bench, measured: Measured, peers: Peers, say: Callable[[str], None]) -> dict[str, Any]:
    """Every setting over the prompts of a set, ours before and after each, and the fastest again in alternation with
    ours; for ``decode.json``.

    ``{"skipped": why}`` where llama.cpp cannot do the same.
    """
    reason = why_not(measured)
    if reason is not None:
        return {"skipped": reason}
    with tempfile.TemporaryDirectory(prefix="codespec-peers-") as states:
        return _compare(bench, measured, peers, replace(peer_options(bench, measured), states=Path(states)), say)


def _compare(
    bench: Bench, measured: Measured, peers: Peers, options: PeerOptions, say: Callable[[str], None]
) -> dict[str, Any]:
    own, title = bench.options, f"{measured.set}, T = {measured.temperature:g}"
    prompts = [prompt_of(bench.engine.model.vocabulary, prompt.tokens) for prompt in measured.prompts]
    disturbance, ours = Disturbance(), _Ours(bench, measured)

    def run(setting: PeerSetting) -> SettingResult:
        say(f"{title}: llama.cpp, {setting.mode}: {setting.name}")
        return disturbance.undisturbed(lambda: measure(setting, peers.folder, own.target, prompts, options, own.draft))

    results, figures, brackets = [], [], [ours.times()]
    for setting in peers.settings(own.draft is not None):
        result = run(setting)
        results.append(result)
        if result.complete:
            say(f"{title}: ours again")
            brackets.append(ours.times())
        around = [statistics.mean(pair) for pair in zip(*brackets[-2:], strict=True)]
        figures.append(_figures(bench, measured, result, ours, around))
    of_setting = dict(zip([(each.setting.mode, each.setting.name) for each in results], figures, strict=True))
    # What proposed nothing ran as the plain server does: to take the fastest of those is to take noise.
    busy = [each for each in results if each.acceptance is not None or each.setting.mode == PLAIN]
    chosen = best(busy)
    first = min(chosen.values(), key=lambda result: result.ms_per_token, default=None)
    named = {mode: of_setting[mode, each.setting.name] for mode, each in chosen.items()}
    return {
        "best": {mode: {key: value for key, value in each.items() if key != "results"} for mode, each in named.items()},
        "idle": idle(results),
        "failed": sum(not each.complete for each in results),
        "fastest": None if first is None else _alternately(ours, lambda: run(first.setting), first.setting, say, title),
        "between": [round(statistics.median(times), 3) for times in brackets],
        "without": sorted(_unread(measured)),
        "disturbance": disturbance.as_json(),
        "settings": figures,
    }


class _Ours:
    """Our own time beside a peer's: of ``combined`` where that is measured, else of the target alone."""

    def __init__(self, bench: Bench, measured: Measured) -> None:
        self._bench, self._measured = bench, measured
        self.arm = "combined" if (0, "combined") in measured.samples else "target"

    def times(self) -> list[float]:
        """Milliseconds a token, by prompt."""
        found = []
        for index in range(len(self._measured.prompts)):
            if self.arm == "combined":  # so that the draft model has read the prompt, as before
                self._bench.run(self._measured.prompts[index], self.arm, self._measured.temperature)
            found.append(per_token(self._measured.again(self._bench, index, self.arm)))
        return found

    def over_target(self, index: int) -> float:
        """How many times as long the target alone takes, in the run before the peers."""
        return _own(self._measured, index, "target") / _own(self._measured, index, self.arm)


def _alternately(
    ours: _Ours, run: Callable[[], SettingResult], setting: PeerSetting, say: Callable[[str], None], title: str
) -> dict[str, Any]:
    """Ours and a setting in turn: the setting was chosen by its first times, which flatter it."""
    ratios: list[list[float]] = []
    for _ in range(ROUNDS):
        say(f"{title}: ours and the fastest in alternation")
        before = ours.times()
        result = run()
        after = ours.times()
        if result.complete:
            mean = [statistics.mean(pair) for pair in zip(before, after, strict=True)]
            ratios.append([_ms(each) / own for each, own in zip(result.results, mean, strict=True)])
    figures: dict[str, Any] = {"mode": setting.mode, "name": setting.name, "rounds": len(ratios)}
    if ratios:
        by_prompt = [statistics.median(each) for each in zip(*ratios, strict=True)]
        figures[f"{ours.arm}_over_it"] = round(statistics.median(by_prompt), 3)
        figures["interval"] = [round(value, 3) for value in bootstrap(by_prompt)]
    return figures


def _ms(result: PeerResult) -> float:
    return result.decode_ms / max(1, result.decoded)


def idle(results: Sequence[SettingResult]) -> dict[str, Any]:
    """The settings that proposed nothing, and the times of the server among them, plain included: its noise."""
    found = [each for each in results if each.complete and each.acceptance is None]
    times = [each.ms_per_token for each in found if each.setting.program == SERVER]
    return {
        "settings": [f"{each.setting.mode}, {each.setting.name}" for each in found if each.setting.mode != PLAIN],
        "server_ms_per_token": [round(min(times), 3), round(max(times), 3)] if len(times) > 1 else None,
    }


def why_not(measured: Measured) -> str | None:
    """Why a set is none for llama.cpp's tools; None where it is."""
    if any(prompt.known is not None for prompt in measured.prompts):
        return "its text is replayed, which llama.cpp's tools cannot do"
    return None


def _unread(measured: Measured) -> set[str]:
    """The grammars of a set that llama.cpp does not read; it writes without them, which costs it less."""
    return {prompt.grammar for prompt in measured.prompts if prompt.grammar} - PLAIN_GRAMMARS


def peer_options(bench: Bench, measured: Measured) -> PeerOptions:
    """The same as ours: end tokens are out, so that all write as much."""
    own = bench.options
    grammar = next((prompt.grammar for prompt in measured.prompts if prompt.grammar in PLAIN_GRAMMARS), None)
    return PeerOptions(
        n_predict=own.tokens,
        temperature=measured.temperature,
        seed=own.seed,
        ignore_eos=True,
        grammar=None if grammar is None else shipped()[grammar].read_text("utf-8"),
        context=bench.engine.context_length + SPARE,
        threads=own.threads,
        draft_threads=own.threads,
    )


def _figures(
    bench: Bench, measured: Measured, result: SettingResult, ours: _Ours, around: Sequence[float]
) -> dict[str, Any]:
    """A setting's own figures, and its speed beside ours, prompt by prompt.

    Args:
        around: our milliseconds a token before and after it.
    """
    figures = result.as_json()
    for each in figures["results"]:
        each.pop("ids", None)  # the text says the same
    if not result.complete:
        return figures
    ratios = [_ms(each) / own for each, own in zip(result.results, around, strict=True)]
    speeds = [ours.over_target(index) / ratio for index, ratio in enumerate(ratios)]
    figures["speed"] = round(statistics.median(speeds), 3)
    figures["interval"] = [round(value, 3) for value in bootstrap(speeds)]
    figures["slowest_prompt"] = round(min(speeds), 3)
    figures["ours_around"] = round(statistics.median(around), 3)
    if ours.arm == "combined":
        figures["combined_over_it"] = round(statistics.median(ratios), 3)
        figures["combined_over_it_interval"] = [round(value, 3) for value in bootstrap(ratios)]
    if measured.temperature == 0:
        same = sum(_same(bench, measured, index, each) for index, each in enumerate(result.results))
        figures["same_text"] = f"{same} of {len(ratios)}"
    return figures


def _own(measured: Measured, index: int, arm: str) -> float:
    return statistics.median(per_token(sample) for sample in measured.samples[index, arm])


def _same(bench: Bench, measured: Measured, index: int, result: PeerResult) -> bool:
    """Whether a peer wrote what our target writes, up to the shorter of the two."""
    own = measured.samples[index, "target"][0].tokens
    theirs: Sequence[Any] = result.text
    ours: Sequence[Any] = text_of(own, bench.engine.vocabulary)
    if result.ids is not None:
        theirs, ours = result.ids, own
    length = min(len(theirs), len(ours))
    return length > 0 and theirs[:length] == ours[:length]


def fastest(peers: dict[str, Any] | None) -> dict[str, Any] | None:
    """The fastest setting of all, as ``compare`` described it."""
    chosen = (peers or {}).get("best")
    return min(chosen.values(), key=lambda figures: figures["ms_per_token"]) if chosen else None


HEAD = (
    "llama.cpp's own",
    "best setting",
    "speed (95 %)",
    "slowest",
    "ms/token",
    "accepted",
    "combined / it",
    "same text",
)


def table(peers: dict[str, Any], aligned: Callable[[Sequence[Sequence[str]]], list[str]]) -> list[str]:
    """Lines for a terminal: the best setting of each mode, and how ours stands to the fastest."""
    if "skipped" in peers:
        return [f"no peers: {peers['skipped']}"]
    lines: list[str] = []
    if peers["best"]:
        rows: list[Sequence[str]] = [HEAD, *(_row(mode, each) for mode, each in peers["best"].items())]
        lines += ["", *aligned(rows)]
    first = peers["fastest"]
    for arm in ("combined", "target"):
        if first is not None and f"{arm}_over_it" in first:
            low, high = first["interval"]
            lines.append(
                f"{arm} is {first[f'{arm}_over_it']:.2f}x ({low:.2f}–{high:.2f}) as fast as the fastest of them "
                f"({first['mode']}, {first['name']}), both run again in alternation, {first['rounds']} times"
            )
    if peers["without"]:
        lines.append(f"llama.cpp wrote without the grammar {' and '.join(peers['without'])}, which it cannot read")
    nothing = peers["idle"]["settings"]
    if nothing:
        line = f"{len(nothing)} of {len(peers['settings'])} settings proposed nothing and are left out"
        span = peers["idle"]["server_ms_per_token"]
        if span is not None:
            line += f"; the server without proposals took {span[0]:.2f} to {span[1]:.2f} ms/token, which is noise"
        lines.append(line)
    if peers["failed"]:
        lines.append(f"{peers['failed']} of {len(peers['settings'])} settings failed; --out DIR writes why")
    between = peers["between"]
    lines.append(f"ours between the settings: {min(between):.2f} to {max(between):.2f} ms/token")
    return [*lines, f"llama.cpp's {len(peers['settings'])} settings: {Disturbance(**peers['disturbance'])}"]


def _row(mode: str, figures: dict[str, Any]) -> Sequence[str]:
    low, high = figures["interval"]
    accepted = figures["acceptance"]
    return (
        mode,
        figures["name"],
        f"{figures['speed']:.2f}x ({low:.2f}–{high:.2f})",
        f"{figures['slowest_prompt']:.2f}x",
        f"{figures['ms_per_token']:.2f}",
        "–" if accepted is None else f"{accepted:.0%}",
        f"{figures['combined_over_it']:.2f}x" if "combined_over_it" in figures else "–",
        figures.get("same_text", "–"),
    )
