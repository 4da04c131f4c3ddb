"""``python -m tests.http.same_text --count 200``: the texts of HTTP and of the command line.

Half the requests are places in files of this repository, half are prompts, most with a constraint or a chat template.
The commands run in this process, each with a model of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import runpy
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from codespec.cli.main import main
from tests.http.http_servers import serving, with_chat_template

FILES = sorted((Path(__file__).parents[2] / "codespec").glob("*/*.py"))
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}
GRAMMAR = 'root ::= "[" [0-9a-f]+ ("," [0-9a-f]+)* "]"\n'
PATTERN = "[a-z_]{3,9}\\([a-z, ]*\\)"
STRICT = {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": SCHEMA}}

Pair = tuple[str, list[str], str, dict]
"""A kind, the arguments of a command, a path and fields."""


def said(arguments: list[str]) -> str:
    """The text that a command prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main([*arguments, "--json"]) == 0
    return json.loads(output.getvalue().splitlines()[0])["text"]


def sampling(chance: random.Random) -> dict:
    """Fields, whose names are also those of the commands' options."""
    return {
        "temperature": chance.choice([0, 0.7, 1]),
        "seed": chance.randrange(1, 10_000),
        "max_tokens": chance.choice([8, 24, 48]),
        "top_k": chance.choice([0, 10, 40]),
        "top_p": chance.choice([0.9, 0.95, 1]),
    }


def place(chance: random.Random) -> Pair:
    """A completion of a place in a file."""
    file = chance.choice(FILES)
    text = file.read_text("utf-8")
    offset = chance.randrange(len(text))
    row, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    fields = {"prompt": text[:offset], "suffix": text[offset:], "language": "python", "path": str(file)}
    return "place", ["complete", f"{file}:{row}:{column}"], "/v1/completions", fields


def prompt(chance: random.Random, folder: Path) -> Pair:
    """A text that follows a prompt, or an answer."""
    text = chance.choice(FILES).read_text("utf-8")[: chance.randrange(20, 400)]
    (folder / "s.json").write_text(json.dumps(SCHEMA), "utf-8")
    (folder / "g.gbnf").write_text(GRAMMAR, "utf-8")
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    constraints: dict[str, tuple[list[str], dict[str, Any]]] = {
        "free": ([], {}),
        "schema": (["--json-schema", str(folder / "s.json")], {"response_format": STRICT}),
        "grammar": (["--grammar", str(folder / "g.gbnf")], {"grammar": GRAMMAR}),
        "shipped": (["--grammar", "json"], {"grammar": "json"}),
        "regex": (["--regex", PATTERN], {"structured_outputs": {"regex": PATTERN}}),
        "chat": (["--chat", "--system", "Be brief."], {"messages": messages}),
    }  # fmt: skip
    kind = chance.choice(list(constraints))
    options, fields = constraints[kind]
    path = "/v1/chat/completions" if kind == "chat" else "/v1/completions"
    return kind, ["generate", text, *options], path, {"prompt": text, **fields}


def text_of(choice: dict) -> str:
    """The text of a choice of either API."""
    return choice["text"] if "text" in choice else choice["message"]["content"]


def compare(count: int, seed: int, exact: bool = True) -> Counter:
    """How many texts were the same and not, by kind.

    Args:
        exact: False lets both round as it comes, by what is in the KV cache and how drafts fill batches.
    """
    found: Counter = Counter()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = with_chat_template(folder)
        with serving(target=model, exact=exact) as server, httpx.Client(base_url=server.url, timeout=120) as client:
            for number in range(count):
                kind, arguments, path, fields = place(chance) if number % 2 else prompt(chance, folder)
                fields |= sampling(chance)
                options = [f"--{name.replace('_', '-')}={fields[name]}" for name in sampling(chance)]
                mine = said([*arguments, "--target", str(model), *options, *(["--exact"] if exact else [])])
                theirs = text_of(client.post(path, json=fields).json()["choices"][0])
                found[kind, mine == theirs] += 1
                if mine != theirs:
                    print(f"{number}: {kind}: {mine!r} and {theirs!r}", flush=True)
    return found


if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).parents[1] / "conftest.py"))  # nothing of the user's
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--not-exact", action="store_true", help="without `--exact`: rounding may tell texts apart")
    options = parser.parse_args()
    counts = compare(options.count, options.seed, not options.not_exact)
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind}: {counts[kind, True]} the same, {counts[kind, False]} not")
    same = sum(count for (_, same), count in counts.items() if same)
    print(f"{same} of {options.count} texts are the same")
    sys.exit(same != options.count)
