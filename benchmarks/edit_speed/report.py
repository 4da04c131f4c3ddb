"""Speeds of all arms and peers over the same cases, and the table of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.decode.decode import bootstrap, share
from benchmarks.edit_speed.arms import Sample
from benchmarks.edit_speed.cases import Tokens
from codespec.draft.costs import LONGEST, CostCurve

Samples = Mapping[str, Sequence[Sample]]
"""By arm or peer, in the order of the cases."""

OURS = "all"


def summarize(cases: Sequence[Tokens], samples: Samples, curve: CostCurve) -> dict[str, Any]:
    """Figures of every arm over all cases and over those of each kind, and how ours stands to the best peer."""
    kinds = sorted({case.case.kind for case in cases})
    parts = {kind: [n for n, case in enumerate(cases) if case.case.kind == kind] for kind in kinds}
    peers = [name for name in samples if name.startswith("server ")]
    whole = {name: _figures(cases, samples, name, range(len(cases)), curve) for name in samples}
    best = max(peers, key=lambda name: float(whole[name]["total"]), default=None)
    return {
        "cases": len(cases),
        "window_tokens": statistics.median(len(case.window) for case in cases),
        "written_tokens": statistics.median(len(case.written) for case in cases),
        "prompt_tokens": statistics.median(len(case.prompt) for case in cases),
        "bound": round(bound(cases, range(len(cases)), curve), 3),
        "arms": whole,
        "kinds": {
            kind: {name: _figures(cases, samples, name, part, curve) for name in samples}
            for kind, part in parts.items()
        },
        "share_of_oracle": share(whole[OURS]["speed"], whole["oracle"]["speed"]),
        "share_of_oracle_total": share(whole[OURS]["total"], whole["oracle"]["total"]),
        "best_peer": best,
        "over_best_peer": None if best is None else _over(samples, best),
    }


def _figures(
    cases: Sequence[Tokens], samples: Samples, name: str, part: Sequence[int], curve: CostCurve
) -> dict[str, Any]:
    alone, own = ([samples[arm][n] for n in part] for arm in ("target", name))
    speeds = [one.ms_per_token / other.ms_per_token for one, other in zip(alone, own, strict=True)]
    tokens = [len(cases[n].written) for n in part]
    times = [sum(each.ms_per_token * count for each, count in zip(side, tokens, strict=True)) for side in (alone, own)]
    passes = sum(len(each.passes) for each in own)
    drafted, accepted = (sum(pair[n] for each in own for pair in each.by_source.values()) for n in (0, 1))
    sources = {source: [0, 0] for each in own for source in each.by_source}
    for each in own:
        for source, pair in each.by_source.items():
            sources[source] = [a + b for a, b in zip(sources[source], pair, strict=True)]
    return {
        "speed": round(statistics.median(speeds), 3),
        "interval": [round(value, 3) for value in bootstrap(speeds)],
        "slowest": round(min(speeds), 3),
        "total": round(times[0] / times[1], 3),
        "ms_per_token": round(statistics.median(each.ms_per_token for each in own), 3),
        "acceptance": round(accepted / drafted, 3) if drafted else None,
        "tokens_per_pass": round(sum(tokens) / passes, 2) if passes and name != "target" else None,
        "by_source": {source: pair for source, pair in sources.items() if pair[0]},
    }


def _over(samples: Samples, peer: str) -> dict[str, Any]:
    ratios = [one.ms_per_token / own.ms_per_token for one, own in zip(samples[peer], samples[OURS], strict=True)]
    return {
        "median": round(statistics.median(ratios), 3),
        "interval": [round(value, 3) for value in bootstrap(ratios)],
        "slowest": round(min(ratios), 3),
    }


def bound(cases: Sequence[Tokens], part: Sequence[int], curve: CostCurve) -> float:
    """The total speed that the times of passes allow: texts cut up in the best way, every proposal right and free."""
    costs, longest = curve.at(0), max(len(cases[n].written) for n in part)
    least = [0.0] * (longest + 1)
    for n in range(1, longest + 1):
        least[n] = min(least[n - size] + costs[size] for size in range(1, min(n, LONGEST) + 1))
    tokens = [len(cases[n].written) for n in part]
    return sum(tokens) * costs[1] / sum(least[count] for count in tokens)


HEAD = ("", "speed (95 %)", "slowest", "all together", "tokens per pass", "accepted")


def table(summary: Mapping[str, Any]) -> list[str]:
    """Lines for a terminal, columns parted by bars."""
    lines = [
        f"{summary['cases']} edits, window {summary['window_tokens']:.0f} tokens, bound {summary['bound']:.2f}x",
        " | ".join(HEAD),
    ]
    lines += [_row(name, each) for name, each in summary["arms"].items()]
    for kind, arms in summary["kinds"].items():
        lines += [_row(f"{kind}: {name}", arms[name]) for name in (OURS, "without window", "oracle") if name in arms]
        peer = summary["best_peer"]
        lines += [_row(f"{kind}: {peer}", arms[peer])] if peer else []
    lines.append(
        f"share of the oracle's saving: {summary['share_of_oracle']} (medians), {summary['share_of_oracle_total']}"
    )
    if summary["over_best_peer"]:
        over = summary["over_best_peer"]
        low, high = over["interval"]
        lines.append(f"over {summary['best_peer']}: {over['median']}x ({low} to {high}), at worst {over['slowest']}x")
    return lines


def _row(name: str, each: Mapping[str, Any]) -> str:
    low, high = each["interval"]
    accepted = "" if each["acceptance"] is None else f"{each['acceptance']:.0%}"
    per_pass = each["tokens_per_pass"] or ""
    return (
        f"{name} | {each['speed']:.2f}x ({low:.2f} to {high:.2f}) | {each['slowest']:.2f}x | {each['total']:.2f}x | "
        f"{per_pass} | {accepted}"
    )
