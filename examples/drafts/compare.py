"""Complete a Python and a Go file with each draft: how much of what it proposes is right, and what a token takes."""

import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from codespec import Generator, Limits, Model, Sampling
from codespec.draft.model import ModelDraft
from codespec.languages import by_path
from codespec.llama.context import Context
from codespec.models.registry import find_draft, find_target

NAMES = sys.argv[1:] or ["none", "draft-general", "draft-python", "draft-go"]

target = Model(find_target())
end_tokens = target.vocabulary.end_tokens
for file in (Path(__file__).parent / name for name in ("basket.py", "basket.go")):
    lines = file.read_text().splitlines(keepends=True)  # go on from the first half of all that are long enough
    starts = ["".join(lines[:row]) + line[: len(line) // 2] for row, line in enumerate(lines) if len(line) > 12]
    print(f"{file.name + f', {len(starts)} places':23} right of proposed   tokens a pass   ms a token, median")
    texts = set()
    for name in NAMES:
        path = find_draft(name, by_path(file.name))
        draft = ModelDraft(Context(Model(path)).sequence(), end_tokens) if path else None
        generator = Generator(Context(target).sequence(), draft, end_tokens, draft_length=4)
        counts, times, text = [], [], []
        for prompt in map(target.vocabulary.tokenize, starts):
            generator.prefill(prompt)
            began = perf_counter()
            text += [token for each in generator.generate(prompt, Sampling(), Limits(32)) for token in each.tokens]
            counts.append(generator.statistics)
            times.append((perf_counter() - began) * 1e3 / counts[-1].tokens)
        proposed = sum(each.drafted for each in counts)
        share = f"{sum(each.accepted for each in counts) / proposed:.0%} of {proposed}" if proposed else "-"
        tokens_a_pass = len(text) / sum(each.target_calls for each in counts)
        print(f"  {name:21} {share:>17} {tokens_a_pass:15.2f} {median(times):20.2f}")
        texts.add(tuple(text))
    print(f"  {len(texts)} different {'text' if len(texts) == 1 else 'texts'}\n")
