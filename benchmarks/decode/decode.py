"""``python -m benchmarks decode``: what each source of drafts is worth, as ratios to the target alone in one run."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import codespec
from benchmarks.decode.prompts import Prompt, prompts
from benchmarks.decode.replay import ReplayTarget, TimedTarget
from benchmarks.disturbance import Disturbance
from codespec.draft.costs import LONGEST, CostCurve
from codespec.draft.draft_length import FixedLengthDraft
from codespec.engine.combinations import SOURCES
from codespec.engine.local import LocalEngine
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError, Draft, GrammarState, Limits, Proposal, Round, Sampler, Sampling, Target

Arm = str
"""``target`` (alone), ``combined``, ``oracle``, a source by itself, or ``fixed K`` (the draft model, K tokens)."""

ARMS = ("target", "combined", "forced", "ngram", "model", "oracle")


@dataclass(frozen=True)
class Options:
    """What to measure.

    Attributes:
        target, draft: models; no draft leaves the draft model's arms out.
        sets: of ``prompts.SETS``.
        arms: see ``Arm``.
        curve: the target's time is taken from this cost curve, not from the clock.
        as_text: only prompts whose text a tokenizer makes the same tokens of: some of llama.cpp's tools read texts.
    """

    target: Path = EMBEDDED_TARGET
    draft: Path | None = None
    files: tuple[Path, ...] = ()
    sets: tuple[str, ...] = ("code",)
    arms: tuple[Arm, ...] = ARMS
    temperatures: tuple[float, ...] = (0.0,)
    count: int = 8
    repeats: int = 5
    tokens: int = 64
    threads: int = 0
    seed: int = 1
    curve: CostCurve | None = None
    as_text: bool = False


@dataclass
class Sample:
    """One text.

    Attributes:
        python_ms: of each pass after the prompt's own: all but the passes of target and draft model.
    """

    ms: float
    tokens: tuple[int, ...]
    rounds: tuple[Round, ...]
    python_ms: tuple[float, ...]
    by_source: dict[str, tuple[int, int]]


@dataclass
class Measured:
    """All texts of one set at one temperature: by prompt and arm, in the order of the repeats.

    Where time is modelled nothing is measured again."""

    set: str
    temperature: float
    prompts: list[Prompt]
    samples: dict[tuple[int, Arm], list[Sample]] = field(default_factory=dict)
    disturbance: Disturbance = field(default_factory=Disturbance)

    def again(self, bench: Bench, index: int, arm: Arm, known: Sequence[int] | None = None) -> Sample:
        """One text more of an arm, on a quiet machine if possible."""

        def run() -> Sample:
            return bench.run(self.prompts[index], arm, self.temperature, known)

        return run() if bench.options.curve is not None else self.disturbance.undisturbed(run)


class Bench:
    """An engine whose passes are timed, and the arms over it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        # What another process takes away must not count where the target's time is not measured either.
        self.clock = perf_counter if options.curve is None else process_time
        self.targets: list[TimedTarget] = []
        self.engine = LocalEngine(options.target, threads=options.threads, wrap=self._wrap, clock=self.clock)
        self.target = self.targets[0]
        assert isinstance(self.target, ReplayTarget)
        try:
            self.engine.drafts.choose(options.draft)
            self.curve = self._measured()
            if options.curve is not None:
                self.curve = options.curve
                self.engine.costs.replace(self.curve)
                self.engine.costs.fixed = True
        except BaseException:
            self.engine.close()
            raise
        self.sampled = {t: float("-inf") for t in self.engine.vocabulary.end_tokens}

    def _wrap(self, sequence: Target, role: str) -> Target:
        self.targets.append((ReplayTarget if role == "target" else TimedTarget)(sequence, self.clock))
        return self.targets[-1]

    def _measured(self) -> CostCurve:
        self.engine.measure(lambda: True)
        return self.engine.costs.curve

    def run(self, prompt: Prompt, arm: Arm, temperature: float, known: Sequence[int] | None = None) -> Sample:
        """Let an arm write one text; the prompt's own decoding is not counted.

        Args:
            known: what the oracle says comes.
        """
        engine, options = self.engine, self.options
        assert isinstance(self.target, ReplayTarget)
        self.target.text = None if prompt.known is None else (*prompt.tokens, *prompt.known)
        # End tokens are out, so that every arm writes as much.
        sampling = Sampling(temperature=temperature, seed=options.seed, logit_bias=self.sampled)
        engine.drafts.combinations.sources = frozenset({arm}) if arm in SOURCES else SOURCES
        state = prompt.state(engine)
        before = [timed.ms for timed in self.targets]
        passes = [(self.clock(), sum(before))]
        chunks = engine.generate(
            prompt.tokens,
            state,
            sampling,
            Limits(options.tokens),
            speculate=self._draft(arm, prompt, known),
            language=prompt.language,
        )
        rounds = []
        for chunk in chunks:
            assert chunk.round is not None
            rounds.append(chunk.round)
            passes.append((self.clock(), sum(timed.ms for timed in self.targets)))
        python = [
            max(0.0, (end - begin) * 1e3 - (after - earlier)) for (begin, earlier), (end, after) in pairwise(passes)
        ]
        total_ms = (passes[-1][0] - passes[0][0]) * 1e3
        return self._sample(rounds, before, total_ms, python, arm)

    def _sample(
        self, rounds: list[Round], before: list[float], total_ms: float, python: list[float], arm: Arm
    ) -> Sample:
        s = self.engine.statistics
        drafts = sum(timed.ms - ms for timed, ms in zip(self.targets[1:], before[1:], strict=True))
        ms = total_ms - s.prefill_ms
        if self.options.curve is not None:
            costs, last = self.curve.at(0), 0
            ms = drafts + sum(python)
            for step in rounds[1:]:
                n = 1 + len(step.proposed)
                ms += costs[n] + (self.curve.switch_ms if n != last else 0.0)
                last = n
        if arm == "oracle":
            ms -= drafts
        tokens = tuple(token for step in rounds for token in step.tokens)
        sources = {name: (count.drafted, count.accepted) for name, count in s.by_source.items()}
        return Sample(ms, tokens, tuple(rounds), tuple(python[1:]), sources)

    def _draft(self, arm: Arm, prompt: Prompt, known: Sequence[int] | None) -> bool | Draft:
        if arm == "target":
            return False
        if arm == "oracle":
            return Oracle((*prompt.tokens, *(known or ())), best_length(self.curve.at(0)))
        if arm.startswith("fixed "):
            draft = self.engine.drafts.model
            if draft is None:
                raise CodespecError(f"{arm}: there is no draft model")
            return FixedLengthDraft(draft, int(arm.split()[1]))
        return True

    def close(self) -> None:
        """Free the models."""
        self.engine.close()


def best_length(costs: Sequence[float]) -> int:
    """The length at which a draft that is always right and free would save most."""
    return max(range(LONGEST), key=lambda n: (n + 1) / costs[n + 1])


class Oracle:
    """Proposes the text that is known to come."""

    def __init__(self, text: Sequence[int], length: int) -> None:
        self._text, self._length = list(text), length

    def propose(
        self, tokens: Sequence[int], grammar: GrammarState | None, sampler: Sampler, more: Callable[[float], bool]
    ) -> Proposal:
        rest = self._text[len(tokens) : len(tokens) + self._length]
        count = 0
        while count < len(rest) and more(1.0):
            count += 1
        return Proposal(tuple(rest[: count if grammar is None else grammar.accept(rest[:count])]), source="oracle")


def measure_all(bench: Bench, say: Callable[[str], None]) -> list[Measured]:
    """Every set at every temperature, interleaved: each repeat of a prompt runs every arm, in an order of its own.

    Raises:
        CodespecError: the files do not give enough prompts.
    """
    options = bench.options
    measured = []
    for name in options.sets:
        say(f"{name}: choosing prompts")
        chosen = prompts(
            bench.engine,
            name,
            options.files or default_files(),
            options.count,
            options.tokens,
            options.seed,
            options.as_text,
        )
        for temperature in options.temperatures:
            measured.append(measure_set(bench, name, chosen, temperature, say))
    return measured


def default_files() -> list[Path]:
    """The package's own sources: code that no model here has seen."""
    return [path for path in sorted(Path(codespec.__file__).parent.rglob("*.py")) if path.stat().st_size > 3_000]


def measure_set(
    bench: Bench, name: str, chosen: list[Prompt], temperature: float, say: Callable[[str], None]
) -> Measured:
    """Every arm on every prompt, several times."""
    options = bench.options
    measured = Measured(name, temperature, chosen)
    order = random.Random(options.seed)
    arms = [arm for arm in options.arms if arm != "forced" or any(p.grammar for p in chosen)]
    arms = [arm for arm in arms if arm != "model" or options.draft is not None]
    for index, prompt in enumerate(chosen):
        known = _settled(bench, prompt, temperature) if "oracle" in arms else None
        bench.run(
            prompt, "combined", temperature
        )  # so that no arm decodes the prompt with the draft model on the clock
        for repeat in range(options.repeats):
            say(f"{name}, T = {temperature:g}: prompt {index + 1}/{len(chosen)}, repeat {repeat + 1}/{options.repeats}")
            order.shuffle(arms)
            for arm in arms:
                sample = measured.again(bench, index, arm, known)
                measured.samples.setdefault((index, arm), []).append(sample)
    return measured


def _settled(bench: Bench, prompt: Prompt, temperature: float) -> tuple[int, ...]:
    """What the target writes behind an oracle: its numerics differ with the size of a pass, and so may a near tie."""
    known = bench.run(prompt, "target", temperature).tokens
    for _ in range(4):
        sample = bench.run(prompt, "oracle", temperature, known)
        if sample.tokens == known:
            break
        known = sample.tokens
    return known


def summarize(measured: Measured, curve: CostCurve) -> dict[str, Any]:
    """Medians of the ratios to the target alone, prompt by prompt and repeat by repeat."""
    figures = {arm: _figures(measured, arm) for arm in sorted({arm for _, arm in measured.samples}, key=_order)}
    bound = round(statistics.median(_bound(measured, index, curve) for index in range(len(measured.prompts))), 3)
    combined, oracle = (figures[arm]["speed"] if arm in figures else None for arm in ("combined", "oracle"))
    return {
        "set": measured.set,
        "temperature": measured.temperature,
        "prompts": len(measured.prompts),
        "bound": bound,
        "saving": None if combined is None else round(saving(combined), 3),
        "share_of_oracle": share(combined, oracle),
        "share_of_bound": share(combined, bound),
        "disturbance": measured.disturbance.as_json(),
        "arms": figures,
    }


def saving(speed: float) -> float:
    """The share of the target's time that a speed saves; negative where it takes longer."""
    return 1 - 1 / speed


def share(speed: float | None, best: float | None) -> float | None:
    """What of the best's saving is reached; None where one was not measured or the best saves nothing."""
    return round(saving(speed) / saving(best), 3) if speed and best and best > 1 else None


def _order(arm: Arm) -> tuple[int, int]:
    return (ARMS.index(arm), 0) if arm in ARMS else (len(ARMS), int(arm.split()[1]))


def per_token(sample: Sample) -> float:
    """Milliseconds for each token after the first, which the prompt's own decoding gave."""
    return sample.ms / max(1, len(sample.tokens) - 1)


def _figures(measured: Measured, arm: Arm) -> dict[str, Any]:
    ratios: list[list[float]] = []
    same = total = 0
    samples: list[Sample] = []
    for index in range(len(measured.prompts)):
        alone, own = measured.samples[index, "target"], measured.samples[index, arm]
        ratios.append([per_token(a) / per_token(b) for a, b in zip(alone, own, strict=True)])
        same += sum(a.tokens == b.tokens for a, b in zip(alone, own, strict=True))
        total += len(own)
        samples += own
    medians = [statistics.median(each) for each in ratios]
    calls = sum(len(sample.rounds) - 1 for sample in samples)
    python = [ms for sample in samples for ms in sample.python_ms] or [0.0]
    drafted = sum(len(step.proposed) for sample in samples for step in sample.rounds)
    accepted = sum(step.accepted for sample in samples for step in sample.rounds)
    return {
        "speed": round(statistics.median(medians), 3),
        "interval": [round(value, 3) for value in bootstrap(medians)],
        "slowest_prompt": round(min(medians), 3),
        "ms_per_token": round(statistics.median(per_token(sample) for sample in samples), 3),
        "acceptance": round(accepted / drafted, 3) if drafted else None,
        "tokens_per_pass": round(sum(len(sample.tokens) - 1 for sample in samples) / max(1, calls), 2),
        "python_us_per_pass": round(1e3 * statistics.median(python)),
        "python_us_mean": round(1e3 * statistics.mean(python)),
        "by_source": _by_source(samples),
        "same_text": f"{same} of {total}",
    }


def _by_source(samples: Sequence[Sample]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for sample in samples:
        for name, (drafted, accepted) in sample.by_source.items():
            count = found.setdefault(name, [0, 0])
            count[0] += drafted
            count[1] += accepted
    return {name: count for name, count in found.items() if count[0]}


def _bound(measured: Measured, index: int, curve: CostCurve) -> float:
    """The speed of passes alone, cut up in the best way, all proposals right and free."""
    tokens = max(1, len(measured.samples[index, "target"][0].tokens) - 1)
    costs = curve.at(0)
    least = [0.0] * (tokens + 1)
    for n in range(1, tokens + 1):
        least[n] = min(least[max(0, n - size)] + costs[size] for size in range(1, LONGEST + 1))
    return tokens * costs[1] / least[tokens]


def bootstrap(values: Sequence[float], draws: int = 2_000, seed: int = 1) -> tuple[float, float]:
    """The 95 % interval of the median, by drawing the values anew."""
    chooser = random.Random(seed)
    medians = sorted(statistics.median(chooser.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def load_curve(path: Path) -> CostCurve:
    """A cost curve as ``python -m benchmarks profile --out`` or an earlier run wrote it.

    Raises:
        CodespecError: it is none.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        return CostCurve.from_json(data.get("curve", data))
    except (OSError, ValueError, AttributeError) as error:
        raise CodespecError(f"{path}: no cost curve ({error}); `profile --out DIR` writes one") from None
