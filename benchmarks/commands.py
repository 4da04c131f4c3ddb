"""The benchmarks by name; each imports what is heavy when it runs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.options import build_parser
from codespec.cli import show
from codespec.cli.main import run_command
from codespec.errors import CodespecError
from codespec.extras import remedy


def run_latency(options: argparse.Namespace) -> int:
    """``python -m benchmarks latency``."""
    from benchmarks.latency.latency import Plan, run
    from benchmarks.progress import progress

    target = {"path": _target(options.target), "threads": options.threads, "context": options.context}
    settings: dict[str, Any] = {"target": {key: value for key, value in target.items() if value}}
    if options.draft:
        settings["draft"] = options.draft
    plan = Plan(
        options.repository,
        [arm.strip() for arm in options.arms.split(",") if arm.strip()],
        options.count,
        options.debounce,
        options.seed,
        options.out,
        options.order,
        options.llama_server,
        shlex.split(options.llama_server_arguments),
    )
    return run(plan, settings, progress())


def run_plan(options: argparse.Namespace) -> int:
    """``python -m benchmarks plan``."""
    from benchmarks.capacity.plan import run_plan as run

    return run(options)


def run_capacity(options: argparse.Namespace) -> int:
    """``python -m benchmarks capacity``."""
    from benchmarks.capacity.capacity import Plan, run
    from benchmarks.capacity.plan import read_curve
    from benchmarks.capacity.sessions import Work
    from benchmarks.progress import progress
    from codespec.models.registry import find_target

    work = Work(options.prompt, 1, options.answer, memory=0.0, debounce_ms=options.debounce, prefill=False)
    plan = Plan(
        options.llama_server,
        find_target(_target(options.target)),
        options.clients,
        options.slots,
        options.threads,
        options.seconds,
        options.repeats,
        work,
        options.seed,
        options.spin,
        read_curve(options.curve) if options.curve else None,
        options.out,
    )
    return run(plan, progress())


def run_profile(options: argparse.Namespace) -> int:
    """``python -m benchmarks profile``."""
    from benchmarks.decode.profile import run
    from codespec.cli.complete import load_config

    config = load_config(options)
    if options.threads is not None:
        config = replace(config, target=replace(config.target, threads=options.threads))
    measured = options.contexts, options.repeats
    return run(config, options.language, *measured, options.out, options.json, show.progress(), show.error)


def run_quality(options: argparse.Namespace) -> int:
    """``python -m benchmarks quality``."""
    from benchmarks.progress import progress
    from benchmarks.quality.quality import run, settings

    config = settings(_target(options.target), options.draft or "", options.gate or "", options.grammar or "")
    return run(options.paths, options.requests, options.seed, options.out, config, progress(), options.show)


def run_learning(options: argparse.Namespace) -> int:
    """``python -m benchmarks learning``."""
    from benchmarks.decode.learning import run

    return run(options.paths, options.passes, options.positions, options.out)


def run_round_trips(options: argparse.Namespace) -> int:
    """``python -m benchmarks round-trips``."""
    from benchmarks.decode.decode import default_files
    from benchmarks.decode.report import source_files
    from benchmarks.remote.round_trips import run
    from codespec.models.registry import EMBEDDED_TARGET

    sets = [name.strip() for name in options.sets.split(",")]
    return run(
        options.url,
        options.kind,
        options.vocabulary or EMBEDDED_TARGET,
        [float(way) for way in options.ways.split(",")],
        sets,
        source_files(options.paths, sets) or default_files(),
        options.count,
        options.tokens,
        options.out,
    )


def run_decode(options: argparse.Namespace) -> int:
    """``python -m benchmarks decode``."""
    from benchmarks.decode.report import run

    return run(options)


def run_sources(options: argparse.Namespace) -> int:
    """``python -m benchmarks sources``."""
    from benchmarks.quality.sources import run

    return run(options.grammar, options.paths, options.limit, options.out, judged=not options.no_judge)


def run_busy(options: argparse.Namespace) -> int:
    """``python -m benchmarks busy``."""
    from benchmarks.decode.busy import run
    from codespec.models.registry import EMBEDDED_TARGET, file_or_model

    target = file_or_model(options.target) if options.target else EMBEDDED_TARGET
    return run(target, options.paths, options.samples, options.shell, options.out)


def run_gate(options: argparse.Namespace) -> int:
    """``python -m benchmarks gate``."""
    from benchmarks.quality.gate import run
    from benchmarks.quality.quality import settings
    from codespec.config import Config

    config = settings(_target(options.target), options.draft or "", options.gate or "", options.grammar or "")
    config = replace(
        config,
        max_tokens=options.max_tokens or config.max_tokens,
        time_budget_ms=Config().time_budget_ms if options.new_user else config.time_budget_ms,
        learn=options.new_user,
        target=replace(config.target, threads=options.threads or config.target.threads),
    )
    languages = options.languages.split(",")
    return run(options.paths, languages, options.positions, options.seed, options.out, config)


def run_infill(options: argparse.Namespace) -> int:
    """``python -m benchmarks infill``."""
    from benchmarks.infill.infill import ARMS, Plan, fetch, run
    from benchmarks.infill.settings import settings
    from benchmarks.progress import progress

    if options.fetch is not None:
        return fetch(options.fetch, progress())
    if not options.paths:
        raise CodespecError("name a set (.jsonl), or files and folders to make one of; --fetch DIR gets packages")
    arms = _names(options.arms)
    if unknown := [name for name in arms if name not in ARMS]:
        raise CodespecError(f"no arm {unknown[0]!r}; there are {', '.join(ARMS)}")
    plan = Plan(
        options.paths,
        arms=arms,
        languages=_names(options.languages),
        kinds=_names(options.kinds),
        count=options.count,
        seed=options.seed,
        cursor=options.cursor,
        tested=options.doctests,
        make=options.make,
        out=options.out,
        show=options.show,
        llama_server=options.llama_server,
        busy=options.busy,
    )
    return run(plan, settings(_target(options.target), options.budget, options.settings), progress())


def run_typing(options: argparse.Namespace) -> int:
    """``python -m benchmarks typing``."""
    from benchmarks.infill.settings import settings, tables
    from benchmarks.progress import progress
    from benchmarks.typing.typing import Plan, run

    target = _target(options.target)
    settings(target, None, options.settings)  # says what is wrong with them
    given: dict[str, Any] = {}
    for each in tables(target, None, options.settings):
        for key, value in each.items():
            given[key] = given.get(key, {}) | value if isinstance(value, dict) else value
    plan = Plan(
        options.paths,
        editor=options.editor,
        languages=_names(options.languages),
        pauses=options.pauses,
        busy=options.busy,
        seed=options.seed,
        show=options.show,
        out=options.out,
    )
    return run(plan, given, progress())


def _target(name: str | None) -> str:
    """The path of the model that ``--target`` means, a file of the current folder or a known name; empty for the
    embedded one. The language server of a run looks in folders of its own, and would not find a name.

    Raises:
        CodespecError: there is none.
    """
    from pathlib import Path

    from codespec.models.registry import find_target

    if not name:
        return ""
    return str(Path(name).resolve() if Path(name).is_file() else find_target(name))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def run_edit(options: argparse.Namespace) -> int:
    """``python -m benchmarks edit``."""
    from benchmarks.edit.edit import run
    from codespec.models.registry import EMBEDDED_TARGET

    return run(
        options.model or EMBEDDED_TARGET.with_name("edit.gguf"),
        options.cases,
        options.git,
        options.count,
        options.seed,
        float(options.budget),
        options.threads or 0,
        options.out,
        options.show,
        not options.model_only,
    )


def run_renames(options: argparse.Namespace) -> int:
    """``python -m benchmarks renames``."""
    from benchmarks.progress import progress
    from benchmarks.renames.renames import run

    languages = [name.strip() for name in options.languages.split(",") if name.strip()]
    return run(options.paths, languages, options.count, options.seed, options.out, progress())


def run_http(options: argparse.Namespace) -> int:
    """``python -m benchmarks http``."""
    from pathlib import Path

    from benchmarks.http_speed import python_files, run
    from codespec.models.registry import find_target

    return run(
        find_target(_target(options.target)),
        options.llama_server,
        options.draft,
        python_files(options.paths or [Path(__file__).parents[1] / "codespec"]),
        options.count,
        options.tokens,
        options.repeats,
        options.threads,
        options.clients,
        options.out,
    )


def run_edit_speed(options: argparse.Namespace) -> int:
    """``python -m benchmarks edit-speed``."""
    from benchmarks.edit_speed.edit_speed import Plan, run

    return run(
        Plan(
            options.cases,
            options.git,
            options.count,
            options.seed,
            options.threads,
            options.model,
            options.costs,
            options.peers,
            options.peer_settings,
            options.out,
        )
    )


def run_inflate(options: argparse.Namespace) -> int:
    """``python -m benchmarks inflate``."""
    from benchmarks.inflate import run
    from codespec.models.registry import EMBEDDED_TARGET

    report = show.progress() or (lambda _message, _percent: None)
    return run(
        options.target or EMBEDDED_TARGET,
        options.out,
        options.layers,
        options.ffn,
        options.quantization,
        options.random,
        lambda share: report("writing", int(100 * share)),
    )


def run_grammar(options: argparse.Namespace) -> int:
    """``python -m benchmarks grammar``."""
    if options.decode:
        from benchmarks.grammar.constrained import run as run_constrained

        return run_constrained(options.target, options.tokens, options.out)
    from benchmarks.grammar.grammar import run

    return run(options.grammars, options.vocab, options.out, options.peers)


def run_compare(options: argparse.Namespace) -> int:
    """``python -m benchmarks compare``."""
    try:
        from benchmarks.training.compare import run
    except ImportError as error:
        raise CodespecError(f"{error.name} is missing: {remedy('train')}") from None
    return run(options)


def run_train_edit(options: argparse.Namespace) -> int:
    """``python -m benchmarks train-edit``."""
    try:
        from benchmarks.training.edits.pipeline import run
    except ImportError as error:
        raise CodespecError(f"{error.name} is missing: {remedy('train')}") from None
    try:
        return run(options)
    except ValueError as error:
        raise CodespecError(str(error)) from error


def run_edit_cases(options: argparse.Namespace) -> int:
    """``python -m benchmarks edit-cases``."""
    try:
        from benchmarks.training.edit_cases import run
    except ImportError as error:
        raise CodespecError(f"{error.name} is missing: {remedy('train')}") from None
    return run(options.run, options.out)


def run_fetch(options: argparse.Namespace) -> int:
    """``python -m benchmarks fetch``."""
    from benchmarks.training.fetch import run

    return run(options)


COMMANDS = {
    "compare": run_compare,
    "edit-cases": run_edit_cases,
    "train-edit": run_train_edit,
    "fetch": run_fetch,
    "plan": run_plan,
    "capacity": run_capacity,
    "latency": run_latency,
    "quality": run_quality,
    "learning": run_learning,
    "round-trips": run_round_trips,
    "decode": run_decode,
    "profile": run_profile,
    "sources": run_sources,
    "busy": run_busy,
    "gate": run_gate,
    "infill": run_infill,
    "typing": run_typing,
    "edit": run_edit,
    "renames": run_renames,
    "http": run_http,
    "edit-speed": run_edit_speed,
    "inflate": run_inflate,
    "grammar": run_grammar,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; returns an exit code as ``codespec`` does."""
    return run_command(build_parser(), COMMANDS, arguments)
