"""``codespec bench``: its commands, which import what is heavy when they run."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from typing import Any

from codespec import show


def run_bench_latency(options: argparse.Namespace) -> int:
    """``codespec bench latency``."""
    from codespec.bench.latency import Plan, run
    from codespec.bench.progress import progress

    target = {"path": options.target, "threads": options.threads, "context": options.context}
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


def run_bench_quality(options: argparse.Namespace) -> int:
    """``codespec bench quality``."""
    from codespec.bench.progress import progress
    from codespec.bench.quality import run, settings

    config = settings(options.target or "", options.draft or "", options.gate or "", options.grammar or "")
    return run(options.paths, options.requests, options.seed, options.out, config, progress(), options.show)


def run_bench_learning(options: argparse.Namespace) -> int:
    """``codespec bench learning``."""
    from codespec.bench.learning import run

    return run(options.paths, options.passes, options.positions, options.out)


def run_bench_decode(options: argparse.Namespace) -> int:
    """``codespec bench decode``."""
    from codespec.bench.decode_report import run

    return run(options)


def run_bench_sources(options: argparse.Namespace) -> int:
    """``codespec bench sources``."""
    from codespec.bench.sources import run

    return run(options.grammar, options.paths, options.limit, options.out, judged=not options.no_judge)


def run_bench_busy(options: argparse.Namespace) -> int:
    """``codespec bench busy``."""
    from codespec.bench.busy import run
    from codespec.models.registry import EMBEDDED_TARGET, file_or_model

    target = file_or_model(options.target) if options.target else EMBEDDED_TARGET
    return run(target, options.paths, options.samples, options.shell, options.out)


def run_bench_gate(options: argparse.Namespace) -> int:
    """``codespec bench gate``."""
    from codespec.bench.gate import run
    from codespec.bench.quality import settings

    config = settings(options.target or "", options.draft or "", options.gate or "", options.grammar or "")
    config = replace(
        config,
        max_tokens=options.max_tokens or config.max_tokens,
        target=replace(config.target, threads=options.threads or config.target.threads),
    )
    languages = options.languages.split(",")
    return run(options.paths, languages, options.positions, options.seed, options.out, config)


def run_bench_inflate(options: argparse.Namespace) -> int:
    """``codespec bench inflate``."""
    from codespec.bench.inflate import run
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


def run_bench_grammar(options: argparse.Namespace) -> int:
    """``codespec bench grammar``."""
    if options.decode:
        from codespec.bench.constrained import run as run_constrained

        return run_constrained(options.target, options.tokens, options.out)
    from codespec.bench.grammar import run

    return run(options.grammars, options.vocab, options.out, options.peers)
