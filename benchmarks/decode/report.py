"""What ``python -m benchmarks decode`` says: a table, ``decode.json``, charts, and a trace of every token."""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import statistics
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import plot
from benchmarks.decode import peers as decode_peers
from benchmarks.decode import trace
from benchmarks.decode.decode import ARMS, Bench, Measured, Options, load_curve, measure_all, per_token, summarize
from benchmarks.decode.prompts import OF_ANY_LANGUAGE, SETS
from benchmarks.disturbance import Disturbance
from benchmarks.progress import progress
from codespec.cli.options import version
from codespec.cli.show import text_of
from codespec.draft.costs import CostCurve
from codespec.extras import remedy
from codespec.languages import by_id
from codespec.models.index import draft_of
from codespec.models.registry import find_target
from codespec.protocols import CodespecError


def run(arguments: argparse.Namespace) -> int:
    """The command; its arguments are those of ``options.build_parser``.

    Raises:
        CodespecError: bad arguments, files or models.
    """
    options = options_of(arguments)
    peers = None
    if arguments.peers is not None:
        peers = decode_peers.Peers.checked(arguments.peers, arguments.peer_settings == "few", options)
    say = progress()
    bench = Bench(options)
    try:
        load = _load()
        measured = measure_all(bench, say)
        report = describe(bench, load, arguments.costs)
        report |= {"labels": labels(report), "sets": [_set(bench, each) for each in measured]}
        if peers is not None:
            for each, found in zip(measured, report["sets"], strict=True):
                found["peers"] = decode_peers.compare(bench, each, peers, say)
        say("")
        page = trace.page(report, measured, bench.engine.vocabulary)
    finally:
        bench.close()
    print(table(report))
    if arguments.out is not None:
        for line in write(arguments.out, report, page):
            print(line)
    return 0


def options_of(arguments: argparse.Namespace) -> Options:
    """What the command line asks for.

    Raises:
        CodespecError: no such set, arm, file or model.
    """
    sets = _chosen("set", arguments.sets, SETS)
    arms = _chosen("arm", arguments.arms, ARMS)
    target = find_target(_path_or_name(arguments.target or ""))
    draft = draft_of(target, _path_or_name(arguments.draft), by_id("python"))
    fixed = tuple(f"fixed {length}" for length in arguments.fixed)
    if draft is None and fixed:
        raise CodespecError("--fixed asks the draft model, and there is none; give --draft")
    if draft is None and arguments.arms != "all" and "model" in arms:
        raise CodespecError("the arm 'model' needs a draft model; give --draft")
    return Options(
        target=target,
        draft=draft,
        files=source_files(arguments.files, sets),
        sets=sets,
        arms=(*dict.fromkeys(("target", *arms)), *fixed),
        temperatures=arguments.temperature,
        count=arguments.prompts,
        repeats=arguments.repeats,
        tokens=arguments.tokens,
        threads=arguments.threads,
        curve=None if arguments.costs is None else load_curve(arguments.costs),
        as_text=arguments.peers is not None,
    )


def _chosen(kind: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Names from a list with commas; a blank in a name may be written as a dash."""
    if text == "all":
        return tuple(known)
    names = {name.replace(" ", "-"): name for name in known}
    asked = [part.strip().replace(" ", "-") for part in text.split(",") if part.strip()]
    for name in asked:
        if name not in names:
            raise CodespecError(f"no {kind} {name!r}; there are: all, {', '.join(names)}")
    if not asked:
        raise CodespecError(f"no {kind} given; there are: all, {', '.join(names)}")
    return tuple(dict.fromkeys(names[name] for name in asked))


def _path_or_name(text: str) -> str:
    return str(Path(text).resolve()) if Path(text).is_file() else text


def source_files(paths: Sequence[Path], sets: Sequence[str]) -> tuple[Path, ...]:
    """The files to make the prompts of these sets of, and the Python files in folders; all of them can be read.

    Raises:
        CodespecError: one cannot, or a file is no Python file, and a set needs those.
    """
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    of_any_language = set(sets) <= OF_ANY_LANGUAGE
    for path in found:
        if path.suffix != ".py" and not of_any_language:
            names = ", ".join(sorted(each.replace(" ", "-") for each in OF_ANY_LANGUAGE))
            raise CodespecError(f"{path}: no Python file; only the sets {names} are made of others")
        try:
            text = path.read_text("utf-8")
            if path.suffix == ".py":
                ast.parse(text)
        except (OSError, ValueError, SyntaxError) as error:
            raise CodespecError(f"{path}: cannot be read ({error})") from None
    if paths and not found:
        raise CodespecError(f"{paths[0]}: no Python files in it")
    return tuple(found)


def describe(bench: Bench, load: float | None, costs: Path | None) -> dict[str, Any]:
    """What was measured where; ``load``: of the machine before it began."""
    options, engine = bench.options, bench.engine
    cost_scaled = engine.model.metadata("codespec.cost_scaled") == "true"
    return {
        "date": date.today().isoformat(),
        "codespec": version(),
        "machine": f"{_cpu()}, {os.cpu_count()} CPUs, {platform.system()}",
        "load_average": load,
        "target": options.target.name,
        "target_bytes": options.target.stat().st_size,
        "cost_scaled": cost_scaled,
        "draft": options.draft.name if options.draft else None,
        "context_length": engine.context_length,
        "threads": options.threads,
        "tokens": options.tokens,
        "repeats": options.repeats,
        "seed": options.seed,
        "files": [path.name for path in options.files],
        "time": "modelled" if options.curve is not None else "measured",
        "costs_file": costs.name if costs is not None else None,
        "curve": bench.curve.as_json(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _load() -> float | None:
    """Processes that want a CPU, averaged over a minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _set(bench: Bench, measured: Measured) -> dict[str, Any]:
    return {
        **summarize(measured, bench.curve),
        "texts": [_text(bench, measured, i) for i in range(len(measured.prompts))],
    }


def _text(bench: Bench, measured: Measured, index: int) -> dict[str, Any]:
    """One prompt: every sample of every arm."""
    prompt = measured.prompts[index]
    arms = {arm: samples for (place, arm), samples in measured.samples.items() if place == index}
    return {
        "prompt": prompt.name,
        "prompt_tokens": len(prompt.tokens),
        "text": text_of(arms["target"][0].tokens, bench.engine.vocabulary),
        "arms": {
            arm: {
                "ms": [round(sample.ms, 3) for sample in samples],
                "ms_per_token": [round(per_token(sample), 4) for sample in samples],
                "passes": [len(sample.rounds) - 1 for sample in samples],
                "python_us_per_pass": [round(1e3 * statistics.median(sample.python_ms or [0.0])) for sample in samples],
                "same_text": [
                    sample.tokens == alone.tokens for sample, alone in zip(samples, arms["target"], strict=True)
                ],
            }
            for arm, samples in arms.items()
        },
    }


def labels(report: dict[str, Any]) -> list[str]:
    """What a reader must know before any figure; every output begins with it."""
    found = []
    if report["cost_scaled"]:
        size = report["target_bytes"] / 1e9
        found.append(
            f"cost-scaled: {report['target']} writes the embedded model's text at the cost of a model of {size:.1f} GB"
        )
    if report["time"] == "modelled":
        found.append(
            f"modelled time: the target's passes take what {report['costs_file']} says, not what they took here; "
            "drafting and Python are measured"
        )
    load, cpus = report["load_average"], os.cpu_count() or 1
    if load is not None and load > 0.75 * cpus:
        found.append(f"the machine was busy (load {load:g} on {cpus} CPUs): single times are noisy, ratios less so")
    return found


HEAD = ("arm", "speed (95 %)", "slowest", "ms/token", "accepted", "tokens/pass", "Python µs/pass", "same text")


def table(report: dict[str, Any]) -> str:
    """For a terminal."""
    curve = CostCurve.from_json(report["curve"]).at(0)
    lines = [
        f"target {report['target']}, draft {report['draft'] or 'none'}; {report['machine']}; {report['date']}",
        *report["labels"],
        "Speed is the target's time alone over the arm's, the median over prompts; the prompt's own decoding is not",
        "counted. A pass over 1, 4, 8, 16 tokens: " + ", ".join(f"{curve[n]:.3g}" for n in (1, 4, 8, 16)) + " ms.",
    ]
    for found in report["sets"]:
        lines += ["", *_table_of_set(found, report)]
    return "\n".join(lines)


def _table_of_set(found: dict[str, Any], report: dict[str, Any]) -> list[str]:
    title = f"{found['set']}, T = {found['temperature']:g}"
    rows: list[Sequence[str]] = [HEAD]
    for arm, figures in found["arms"].items():
        accepted = figures["acceptance"]
        rows.append(
            (
                arm,
                "1.00x" if arm == "target" else speed(figures),
                f"{figures['slowest_prompt']:.2f}x",
                f"{figures['ms_per_token']:.2f}",
                "–" if accepted is None else f"{accepted:.0%}",
                f"{figures['tokens_per_pass']:.2f}",
                f"{figures['python_us_per_pass']:,}",
                figures["same_text"],
            )
        )
    times = "once" if report["repeats"] == 1 else f"{report['repeats']} times"
    lines = [f"{title}: {found['prompts']} prompts, each {times}, {report['tokens']} tokens"]
    lines += aligned(rows)
    lines.append(f"bound: the best that proposals could give: {found['bound']:.2f}x, by the cost of passes alone")
    lines += _saved(found)
    if found["disturbance"]["samples"]:
        lines.append(str(Disturbance(**found["disturbance"])))
    if "peers" in found:
        lines += decode_peers.table(found["peers"], aligned)
    return lines


def _saved(found: dict[str, Any]) -> list[str]:
    """One line about what the combined draft saves."""
    if found["saving"] is None:
        return []
    if found["saving"] < 0:
        return [f"combined costs {-found['saving']:.0%} more time than the target alone"]
    line = f"combined saves {found['saving']:.0%} of the target's time"
    if found["share_of_oracle"] is not None:
        line += f", {found['share_of_oracle']:.0%} of what the oracle saves"
    if found["share_of_bound"] is not None:
        line += f", {found['share_of_bound']:.0%} of the bound's saving"
    return [line]


def speed(figures: dict[str, Any]) -> str:
    """A ratio and its interval."""
    low, high = figures["interval"]
    return f"{figures['speed']:.2f}x ({low:.2f}–{high:.2f})"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def plotted(report: dict[str, Any]) -> list[plot.Bar]:
    """Speeds by arm, grouped by set, and the best peer's."""
    found = []
    for each in report["sets"]:
        group = f"{each['set']}, T = {each['temperature']:g}"
        for arm, figures in each["arms"].items():
            if arm != "target":
                found.append(plot.Bar(group, arm, figures["speed"], figures["interval"]))
        fastest = decode_peers.fastest(each.get("peers"))
        if fastest is not None:
            found.append(plot.Bar(group, "llama.cpp's best", fastest["speed"], fastest["interval"]))
    return found


def write(folder: Path, report: dict[str, Any], page: str) -> list[str]:
    """Write everything; returns what to tell."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "decode.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (folder / "decode.html").write_text(page, "utf-8")
    bars = plotted(report)
    title = f"Speed against the target alone: {report['target']} with {report['draft'] or 'no draft model'}"
    (folder / "decode.svg").write_text(plot.ratios(title, bars, report["labels"]), "utf-8")
    names = ["decode.json", "decode.svg", "decode.html"]
    try:
        plot.ratios_png(folder / "decode.png", title, bars, report["labels"])
        names.append("decode.png")
        missing = []
    except ImportError:
        missing = [f"no decode.png, which needs matplotlib: {remedy('bench')}"]
    return [f"\nwrote {', '.join(names)} to {folder}", *missing]
