"""``python -m tests.remote.own_stream URL``: 32 greedy tokens as vLLM streams them, and scored with drafts here.

Each text is asked about once, after it was prefilled, as in an editor: ratios of one run.
"""

import argparse
import statistics
import time

from codespec.languages import by_id
from codespec.protocols import Limits
from tests.remote.same_text import connected
from tests.remote.samples import SAMPLES
from tests.remote.scoring import REPEATED, text_of, tokens_of

TOKENS = 32
NAMES = ("left", "right", "top", "bottom", "width", "height", "depth", "colour", "label", "parent")


def texts(count):
    """For each set, so many texts of which none begins with another."""
    yield (
        "repetitive",
        [
            f"# Part {number}\nclass Point:\n" + "".join(map(REPEATED.format, NAMES[number % 5 :][:5]))
            for number in range(count)
        ],
    )
    sample = SAMPLES["python"]
    yield "code", [f"# Part {number}\n" + sample[: 300 + 40 * number] for number in range(count)]


def streamed(engine, prompt):
    """Seconds, and the tokens."""
    body = {"model": engine.name, "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "stream": True}
    body |= {"ignore_eos": True, "return_token_ids": True}
    began, count = time.perf_counter(), 0
    with engine._connection.stream("/v1/completions", body) as lines:
        count = sum(line.startswith(b"data: {") for line in lines)
    assert count > 3
    return time.perf_counter() - began


def measure(engine, count=5):
    """Lines about each set, and the ratio of the medians."""
    engine.drafts.choose(engine.drafts.find("auto", by_id("python")))
    for name, found in texts(count):
        took, calls, written = {"stream": [], "drafts": []}, [], []
        for text in found:
            prompt = tokens_of(engine, text)
            engine.drafts.forget_generated()
            list(engine.generate(prompt, limits=Limits(max_tokens=1), speculate=False))
            engine.prefill(prompt)
            before = engine._connection.trips
            began = time.perf_counter()
            tokens, _ = text_of(engine, prompt, count=TOKENS)
            took["drafts"].append(time.perf_counter() - began)
            calls.append(engine._connection.trips - before)
            written.append(len(tokens))
            took["stream"].append(streamed(engine, prompt))
        stream, drafts = (statistics.median(took[each]) * 1e3 for each in ("stream", "drafts"))
        ratio = statistics.median(a / b for a, b in zip(took["drafts"], took["stream"], strict=True))
        yield (
            f"{name}: {TOKENS} tokens streamed in {stream:.0f} ms, {statistics.median(written):.0f} scored in "
            f"{drafts:.0f} ms and {statistics.median(calls):.0f} requests: {ratio:.2f} of the time"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=5)
    options = parser.parse_args()
    with connected("vllm", options.url) as engine:
        engine.measure(lambda: True)
        print({size: round(engine.costs.kept(0)[size]) for size in (1, 2, 4, 8, 16, 32)}, "ms a request, by tokens")
        for line in measure(engine, options.count):
            print(line, flush=True)


if __name__ == "__main__":
    main()
