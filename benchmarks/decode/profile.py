"""What forward passes over n tokens cost on this machine, and so the most a draft can gain."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codespec.config import Config
from codespec.config_sections import TargetConfig
from codespec.draft.costs import LONGEST, SIZES, CostCurve, Measurement, plan
from codespec.draft.storage.profiles import Profiles, Setup, default_folder
from codespec.engine.calibration import busy_clock
from codespec.languages import by_id
from codespec.llama.context import Context
from codespec.llama.devices import gpu_layers
from codespec.llama.model import Model
from codespec.llama.rpc import Servers
from codespec.models.index import draft_of
from codespec.models.registry import find_target
from codespec.protocols import CodespecError

CONTEXTS = (0, 512, 2048)
MARGIN = 40
"""Tokens that the model's context must hold beyond the largest one that is measured."""
SECONDS = 4.0  # that a context takes, at least three repeats
REPEATS = (3, 20)

Report = Callable[[str, int], None]


@dataclass(frozen=True)
class Profile:
    """The measured costs of one model.

    Attributes:
        role: ``target`` or ``draft``.
    """

    role: str
    path: Path
    parameters: int
    setup: Setup
    curve: CostCurve

    def as_json(self) -> dict[str, Any]:
        """For ``profile.json``: the curve, and the best fixed length of proposals of a draft that costs nothing."""
        best = {str(context): best_length(self.curve, context) for context in self.curve.contexts}
        return {
            "model": self.path.stem,
            "parameters": self.parameters,
            "devices": list(self.setup.devices),
            "gpu_layers": self.setup.gpu_layers,
            "threads": self.setup.threads,
            "kv_type": self.setup.kv_type,
            "perfect_draft": {context: {"length": k, "speed_up": round(x, 3)} for context, (k, x) in best.items()},
            **self.curve.as_json(),
        }


def run(
    config: Config,
    language: str,
    contexts: Sequence[int] | None,
    repeats: int | None,
    out: Path | None,
    as_json: bool,
    progress: Report | None,
    tell: Callable[[str], None],
) -> int:
    """Measure the target and its draft; print the result, save it for later runs, write it under ``out``.

    Args:
        contexts: in tokens; None is ``CONTEXTS``, as far as a model's context goes.
        repeats: None goes by the model's speed.
        progress: called with a message and percent.
        tell: called with messages for the user, such as contexts that were clipped.

    Raises:
        CodespecError: a model cannot be loaded, or ``out`` not be written.
    """
    target = find_target(config.target.path)
    draft = draft_of(target, config.for_language(language).draft, by_id(language))
    # As the engine loads them: the cache's settings are those of the target alone.
    draft_settings = TargetConfig(gpu_layers=config.target.gpu_layers, threads=config.target.threads)
    found = []
    for role, path, settings in (("target", target, config.target), ("draft", draft, draft_settings)):
        if path is None:
            continue
        found.append(measure(role, path, settings, contexts, repeats, progress, tell))
    result = {profile.role: profile.as_json() for profile in found}
    print(json.dumps(result) if as_json else "\n\n".join(map(table, found)) + "\n\n" + conclusion(*found))
    if out is not None:
        try:
            write(out, result, found)
        except OSError as error:
            raise CodespecError(f"{out}: cannot be written ({error.strerror}); choose another --out") from error
    return 0


def measure(
    role: str,
    path: Path,
    settings: TargetConfig,
    contexts: Sequence[int] | None,
    repeats: int | None,
    progress: Report | None,
    tell: Callable[[str], None],
) -> Profile:
    """Load a model, measure it and save the curve, unless it was disturbed; arguments as of ``run``.

    Raises:
        CodespecError: it cannot be loaded.
    """
    rows = 1 if role == "draft" else None
    longest = max(contexts or CONTEXTS) + LONGEST + 1
    with (
        Servers(settings.rpc) as servers,
        Model(path, gpu_layers=_layers(path, settings, longest, servers), servers=servers) as model,
    ):
        fitting = clipped(contexts or CONTEXTS, model.trained_context - MARGIN)
        if contexts and fitting != tuple(contexts):
            tell(
                f"{path.name}: its context is {model.trained_context:,} tokens and a pass needs {MARGIN}; "
                f"measured at {', '.join(f'{n:,}' for n in fitting)}"
            )
        with Context(
            model,
            context_length=fitting[-1] + LONGEST + 1,
            threads=settings.set_threads,
            kv_type=settings.kv_type,
            flash_attention=settings.flash_attention,
        ) as context:
            sequence = context.sequence()
            planned = plan(sequence, SECONDS)
            assert planned is not None
            least, most = REPEATS
            repeats = repeats or max(least, min(most, planned.repeats))
            setup = Setup.of(context, rows)
            measurement = Measurement(fitting, SIZES, repeats, rows, busy=busy_clock(setup))
            curve = measurement.run(sequence, _go_on(f"measuring {path.name}", progress))
            assert curve is not None
            if progress is not None:
                progress(f"measuring {path.name}", 100)
            if measurement.disturbed:
                tell(f"{path.name}: other programs ran while it was measured; not kept, measure again without them")
            else:
                Profiles(default_folder()).keep_curve(path, setup, curve)
            return Profile(role, path, model.parameter_count, setup, curve)


def _layers(path: Path, settings: TargetConfig, longest: int, servers: Servers) -> int:
    types = settings.kv_type, settings.flash_attention
    return int(gpu_layers(settings.set_gpu_layers, path, longest, *types, servers=servers.gpus).value)


def clipped(contexts: Sequence[int], most: int) -> tuple[int, ...]:
    """Contexts of at most ``most`` tokens, ascending, each once; at least one."""
    return tuple(sorted({max(0, min(context, most)) for context in contexts}))


def _go_on(message: str, progress: Report | None) -> Callable[[float], bool]:
    told = -1

    def go_on(share: float) -> bool:
        nonlocal told
        percent = int(share * 100)
        if progress is not None and percent > told:
            progress(message, percent)
            told = percent
        return True

    return go_on


def best_length(curve: CostCurve, context: int, draft_ms: float = 0.0) -> tuple[int, float]:
    """The best fixed length of proposals that are always accepted, and its speed-up over no draft.

    Args:
        draft_ms: milliseconds of a proposed token.
    """
    costs = curve.at(context)
    speeds = {n - 1: n * costs[1] / (costs[n] + (n - 1) * draft_ms) for n in curve.tokens}
    best = max(speeds, key=lambda length: speeds[length])
    return best, speeds[best]


def table(profile: Profile) -> str:
    """T(n) by context for a terminal."""
    curve = profile.curve
    threads = f"{profile.setup.threads} thread{'s' * (profile.setup.threads > 1)}"
    rows = [
        f"{profile.role} {profile.path.stem}: {profile.parameters:,} parameters, {threads}",
        "    " + "".join(f"{f'context {context:,}':>27}" for context in curve.contexts),
        "   n" + f"{'ms':>9}{'T(n)/T(1)':>10}{'tok/s':>8}" * len(curve.contexts),
    ]
    for index, n in enumerate(curve.tokens):
        cells = [(row[index], row[index] / row[0], n / row[index] * 1e3) for row in curve.ms]
        rows.append(f"{n:4}" + "".join(f"{ms:9.2f}{ratio:10.2f}{speed:8,.0f}" for ms, ratio, speed in cells))
    rows.append(f"a pass over another number of tokens than the one before takes {curve.switch_ms:.2f} ms more")
    return "\n".join(rows)


def conclusion(target: Profile, draft: Profile | None = None) -> str:
    """The most that drafts can gain, a line for each context of the target."""
    out = []
    for context in target.curve.contexts:
        length, speed = best_length(target.curve, context)
        text = f"at context {context:,} "
        if length == 0:
            out.append(
                text + "no draft can gain anything: a pass costs as much for each of its tokens as one token does"
            )
            continue
        text += f"a perfect draft would give at most {speed:.1f}x at {_tokens(length)}"
        if draft is not None:
            length, speed = best_length(target.curve, context, draft.curve.at(context)[1])
            gain = f"{speed:.1f}x at {_tokens(length)}" if length else "nothing"
            text += f"; {draft.path.stem}, if it were always right, {gain}"
        out.append(text)
    return "\n".join(out)


def _tokens(count: int) -> str:
    return f"{count} token{'s' * (count != 1)}"


def write(out: Path, result: dict[str, Any], profiles: Sequence[Profile]) -> None:
    """``profile.json`` and, where matplotlib is installed, ``profile.png``.

    Raises:
        OSError: one cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "profile.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    _draw(out / "profile.png", profiles)


def _draw(path: Path, profiles: Sequence[Profile]) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for profile in profiles:
        for context, row in zip(profile.curve.contexts, profile.curve.ms, strict=True):
            style, name = "--" if profile.role == "draft" else "-", f"{profile.path.stem}, {context:,}"
            axes.plot(profile.curve.tokens, row, style, marker=".", label=name)
    axes.set(
        title="Milliseconds of a pass, by tokens in the KV cache before it",
        xlabel="tokens of the pass",
        ylabel="ms",
        xlim=(0, None),
        ylim=(0, None),
    )
    axes.legend()
    figure.savefig(path, dpi=150)
