"""Every token by where it came from and what became of it, as one HTML page that needs nothing else."""

from __future__ import annotations

import codecs
import re
import statistics
from collections.abc import Sequence
from html import escape
from typing import Any

from benchmarks.decode.decode import Measured, Sample, per_token
from codespec.cli.show import text_of
from codespec.protocols import Round, Vocabulary

ARM = "combined"
LINES = 8
"""Of the prompt that are shown."""

CLASSES = {"model": "m", "ngram": "n", "forced": "f"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1a1a1a; --dim: #777; --line: #ccc; --m: #d3f0d3; --n: #d5e3fb;
  --f: #c8f1f1; --o: #f3e6c4; --r: #b3261e; --rb: #fbe3e1 }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --text: #e6e6e6; --dim: #8b8f97; --line: #3a3f47;
  --m: #1d4d27; --n: #1f3d73; --f: #13535a; --o: #574518; --r: #ff8a80; --rb: #4a1d1b } }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; margin: 2em auto;
  max-width: 70em; padding: 0 1em }
h1 { font-size: 1.3em } h2 { font-size: 1.1em; margin-top: 2em } h3 { font-size: 1em; margin-bottom: .2em }
p { margin: .3em 0 } .label { font-weight: bold } .dim, .p { color: var(--dim) }
pre { border: 1px solid var(--line); border-radius: 4px; padding: .7em; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 13px/1.6 ui-monospace, monospace }
.r { border-left: 1px solid var(--line) } .r:hover { outline: 1px solid var(--dim) }
b { font-weight: normal; border-radius: 3px; margin-right: 1px }
.m { background: var(--m) } .n { background: var(--n) } .f { background: var(--f) } .o { background: var(--o) }
del { color: var(--r); background: var(--rb) } i { font-style: normal; color: var(--dim) }
"""

LEGEND = (
    '<p><span class="r">target\'s own</span> · accepted: <b class="m">draft model</b> <b class="n">n-gram</b> '
    '<b class="f">forced by the grammar</b> · <del>proposed and rejected</del> · <span class="p">prompt</span>. '
    "A line stands before each pass of the target; point at a token for its pass.</p>"
)


def page(report: dict[str, Any], measured: Sequence[Measured], vocabulary: Vocabulary) -> str:
    """The page: for each prompt the last text of the arm ``combined``.

    Args:
        report: what ``decode.json`` holds.
    """
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>python -m benchmarks decode</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>',
        "<h1>Where each token came from</h1>",
        f"<p>target {escape(report['target'])}, draft {escape(report['draft'] or 'none')}; "
        f"{escape(report['machine'])}; {escape(report['date'])}</p>",
        *(f'<p class="label">{escape(label)}</p>' for label in report["labels"]),
        LEGEND,
    ]
    for each in measured:
        if (0, ARM) not in each.samples:
            continue
        parts.append(f"<h2>{escape(each.set)}, temperature {each.temperature:g}</h2>")
        parts += [_article(each, index, vocabulary) for index in range(len(each.prompts))]
    return "\n".join([*parts, "</body></html>\n"])


def _article(measured: Measured, index: int, vocabulary: Vocabulary) -> str:
    """One prompt."""
    prompt, samples = measured.prompts[index], measured.samples[index, ARM]
    alone = measured.samples[index, "target"]
    speed = statistics.median(per_token(a) / per_token(b) for a, b in zip(alone, samples, strict=True))
    before = "\n".join(prompt.text.split("\n")[-LINES - 1 :])
    return (
        f"<h3>{escape(prompt.name)}</h3>\n<p class='dim'>{escape(_summary(samples[-1], speed))}</p>\n"
        f'<pre><span class="p">{_safe(before)}</span>{rounds(samples[-1].rounds, vocabulary)}</pre>'
    )


def _summary(sample: Sample, speed: float) -> str:
    passes = max(1, len(sample.rounds) - 1)
    drafted = sum(len(step.proposed) for step in sample.rounds)
    accepted = sum(step.accepted for step in sample.rounds)
    share = (
        f"{accepted} of {drafted} proposed tokens accepted ({accepted / drafted:.0%})" if drafted else "no proposals"
    )
    return (
        f"{(len(sample.tokens) - 1) / passes:.2f} tokens per pass; {share}; {speed:.2f}x as fast as the target alone; "
        f"proposals by source: {_sources(sample) or 'none'}"
    )


def _sources(sample: Sample) -> str:
    return ", ".join(
        f"{name} {accepted}/{drafted}" for name, (drafted, accepted) in sample.by_source.items() if drafted
    )


def rounds(steps: Sequence[Round], vocabulary: Vocabulary) -> str:
    """The tokens of a text, pass by pass; the first is the prompt's own."""
    # A character may be cut into several tokens: it stands with the last of them.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    parts = []
    for number, step in enumerate(steps):
        title = f"pass {number}: {len(step.proposed)} proposed, {step.accepted} accepted"
        if number == 0:
            title = "the prompt's own pass"
        inner = ""
        for index, token in enumerate(step.tokens):
            text = _safe(decoder.decode(vocabulary.token_bytes(token)), marked=True)
            if index < step.accepted:
                source = step.sources[index] if index < len(step.sources) else ""
                inner += f'<b class="{CLASSES.get(source, "o")}">{text}</b>'
                continue
            inner += _rejected(step, vocabulary) if index == step.accepted else ""
            inner += text
        if len(step.tokens) <= step.accepted:
            inner += _rejected(step, vocabulary)
        parts.append(f'<span class="r" title="{escape(title)}">{inner}</span>')
    return "".join(parts) + _safe(decoder.decode(b"", final=True))


def _rejected(step: Round, vocabulary: Vocabulary) -> str:
    tokens = step.proposed[step.accepted :]
    return "".join(f"<del>{_safe(text_of([token], vocabulary)).replace(chr(10), '⏎')}</del>" for token in tokens)


def _safe(text: str, marked: bool = False) -> str:
    """Escaped; ``marked``: line breaks show."""
    text = escape(_CONTROL.sub("\ufffd", text))
    return text.replace("\n", "<i>⏎</i>\n") if marked else text
