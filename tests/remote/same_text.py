"""Greedy texts of an engine elsewhere, and the local target's: five languages, grammar off and on, drafts on.

``python -m tests.remote.same_text --count 200`` compares so many requests to the vLLM that ``CODESPEC_VLLM`` names
(``--workers 2``: with its layers on two workers).
"""

import argparse
import contextlib
import sys
from collections import Counter

from codespec import Grammar, LocalEngine
from codespec.languages import by_id
from codespec.models.registry import EMBEDDED_TARGET
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.scoring.scoring_engine import ScoringEngine
from tests.remote.real_servers import vllm_server
from tests.remote.samples import SAMPLES
from tests.remote.scoring import state_of, text_of, tokens_of

NEAR = 0.1
"""Between the logits of two tokens, of which either may be the better one: llama.cpp rounds to 8 bits what it
multiplies the embedded target's weights of 8 bits with, and vLLM computes in float32."""


def places(text, count):
    """Texts up to so many cursors behind a word or a sign, spread over a text."""
    step = max(1, len(text) // (count + 1))
    return [text[: step * index] for index in range(1, count + 1)]


def gap(local, prompt, tokens, others):
    """How far apart the logits are of two texts' first different tokens, by the local target."""
    same = next((i for i, (a, b) in enumerate(zip(tokens, others, strict=False)) if a != b), None)
    if same is None:
        return float("inf")
    logits = local._generator.sequence.bring_to([*tokens_of(local, prompt), *tokens[:same]])[0][0]
    return abs(float(logits[tokens[same]] - logits[others[same]]))


def compare(local, engine, prompt, grammar=None):
    """``equal``, ``near`` (they first differ at a near tie) or ``wrong``; the tokens of both, and the gap."""
    states = [None if grammar is None else state_of(each, grammar, prompt) for each in (local, engine)]
    expected, found = text_of(local, prompt, states[0]), text_of(engine, prompt, states[1])
    if found == expected:
        return "equal", expected[0], found[0], 0.0
    apart = gap(local, prompt, expected[0], found[0])
    return ("near" if apart < NEAR else "wrong"), expected[0], found[0], apart


@contextlib.contextmanager
def connected(kind, url, length=0):
    """A scoring engine."""
    connection = Connection(Address(url), silence_s=60.0)
    try:
        engine = ScoringEngine(connection, kind, EMBEDDED_TARGET, context_length=length)
        yield engine
        engine.close()
    finally:
        connection.close()


def run(local, engine, count):
    """Compare so many requests, and print what came of them; whether none is wrong."""
    each, whole = -(-count // (2 * len(SAMPLES))), Counter()
    for language, sample in SAMPLES.items():
        engine.drafts.choose(engine.drafts.find("auto", by_id(language)))
        for grammar in (None, Grammar.load(language)):
            outcomes, calls, tokens, gaps = Counter(), 0, 0, []
            for prompt in places(sample, each):
                outcome, _, found, apart = compare(local, engine, prompt, grammar)
                outcomes[outcome] += 1
                calls, tokens = calls + engine.statistics.target_calls, tokens + len(found)
                gaps += [round(apart, 4)] if apart else []
            named = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
            how = "grammar" if grammar else "free"
            print(f"{language} {how}: {named}; {tokens} tokens in {calls} requests; apart {gaps or '-'}", flush=True)
            whole += outcomes
    print(f"{whole.total()} requests: " + ", ".join(f"{number} {outcome}" for outcome, number in sorted(whole.items())))
    return not whole["wrong"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    local = LocalEngine(EMBEDDED_TARGET, exact=True)
    try:
        with vllm_server(workers=options.workers) as url, connected("vllm", url) as engine:
            return 0 if run(local, engine, options.count) else 1
    finally:
        local.close()


if __name__ == "__main__":
    sys.exit(main())
