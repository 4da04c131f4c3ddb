"""What the tests of scoring engines share: prompts, and texts of engines."""

from codespec.protocols import Limits, Sampling

PROMPTS = {
    "python": "import os\n\n\ndef read(path):\n    with open(path) as file:\n        return ",
    "javascript": "function total(items) {\n  let sum = 0;\n  for (const item of items) {\n    sum += ",
    "go": 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.',
    "rust": "fn largest(values: &[i32]) -> i32 {\n    let mut best = values[0];\n    for value in ",
    "c": "#include <stdio.h>\n\nint main(int argc, char **argv) {\n    for (int i = 0; i < argc; i++) {\n        ",
}
REPEATED = "    def get_{0}(self):\n        return self.{0}\n\n"
CODE = "class Point:\n" + "".join(REPEATED.format(name) for name in ("left", "right", "top", "bottom"))


def tokens_of(engine, text):
    first = [engine.vocabulary.beginning] if engine.vocabulary.beginning is not None else []
    return [*first, *engine.vocabulary.tokenize(text)]


def state_of(engine, grammar, text):
    """The state of a grammar behind a text."""
    state, tokens = engine.grammar_state(grammar), engine.vocabulary.tokenize(text)
    assert state.accept(tokens) == len(tokens)
    return state


def text_of(engine, prompt, grammar=None, sampling=None, count=32, **more):
    """The tokens that an engine generates, and why they end."""
    tokens = tokens_of(engine, prompt) if isinstance(prompt, str) else prompt
    chunks = list(engine.generate(tokens, grammar, sampling or Sampling(), Limits(max_tokens=count), **more))
    return [token for chunk in chunks for token in chunk.round.tokens], chunks[-1].finish_reason
