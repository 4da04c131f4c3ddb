"""Random valid requests to every API that writes texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

FILES = sorted((Path(__file__).parents[2] / "codespec").glob("*/*.py"))
REPEATED = "a = [alpha, beta, gamma, delta]\n"
TEXTS = ["é😀文字 ß→∑", "naïve café — 日本語のテキスト", "aé😀b", "Ω≈ç√∫ «x» “y”", "🏳️‍🌈👩‍👩‍👧 e\u0301\u200b"]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "size": {"type": "integer"}},
          "required": ["name", "size"]}  # fmt: skip


@dataclass
class Asked:
    """A request.

    Attributes:
        path: of the API.
        fields: of the body, without ``stream``.
        fits: whether the text must fit in a document, which cuts it after it was generated.
    """

    path: str
    fields: dict[str, Any]
    fits: bool = False


def any_request(chance: Random) -> Asked:
    """A request of any kind."""
    makers = [_completions, _completions, _chat, _llama_completion, _llama_completion, _infill, _fim]
    return chance.choice(makers)(chance)


def any_prompt(chance: Random) -> str:
    kind = chance.random()
    if kind < 0.35:
        text = chance.choice(FILES).read_text("utf-8")
        start = chance.randrange(max(1, len(text) - 600))
        return text[start : start + chance.randrange(1, 600)]
    if kind < 0.6:
        return REPEATED * chance.randint(2, 8) + REPEATED[: chance.randrange(len(REPEATED))]
    if kind < 0.8:
        return "# " + " ".join(chance.choices(TEXTS, k=chance.randint(1, 4)))
    return chance.choice(["", "\n", "x", "def add(a, b):\n", "for i in range(10):\n    print(", '{"a": 1, "b": '])


def _sampling(chance: Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"temperature": 0} if chance.random() < 0.5 else {
        "temperature": chance.choice([0.3, 0.8, 1, 1.5]), "seed": chance.randrange(1, 10_000),
        "top_p": chance.choice([0.5, 0.9, 1]),
    }  # fmt: skip
    if chance.random() < 0.15:
        fields["frequency_penalty"] = chance.choice([-0.5, 0.5, 1])
    if chance.random() < 0.15:
        fields["logit_bias"] = {str(chance.randrange(5, 8000)): chance.choice([-100, -2, 2]) for _ in range(3)}
    return fields


def _constraint(chance: Random) -> dict[str, Any]:
    kind = chance.random()
    if kind < 0.55:
        return {}
    if kind < 0.7:
        return {"guided_choice": ["".join(chance.choices(TEXTS, k=2)) for _ in range(2)]}
    if kind < 0.8:
        return {"guided_regex": chance.choice(["[é😀文a ]{3,20}", "(ab|abc|é)+", "[a-z ]{5,40}", "(αβ|α|βγ){2,9}"])}
    if kind < 0.9:
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "strict": True,
                                                                           "schema": SCHEMA}}}  # fmt: skip
    return {"grammar": chance.choice(["json", 'root ::= ("alpha, " | "beta, " | "gamma")+', 'root ::= "é"* "😀"+'])}


def _tokens(chance: Random) -> int:
    return chance.choice([0, 1, 2, 5, 12, 24, 24, 40])


def _completions(chance: Random) -> Asked:
    fields = {"prompt": any_prompt(chance), "max_tokens": _tokens(chance), **_sampling(chance)}
    fits = chance.random() < 0.1
    if fits:
        fields |= {"language": "python", "fit": True}
    else:
        fields |= _constraint(chance)
    if chance.random() < 0.3:
        fields["n"] = chance.randint(2, 3)
    if chance.random() < 0.3:
        fields["suffix"] = chance.choice(["\n", ")\n", "\n    return x\n", " # é😀\n"])
    elif chance.random() < 0.15 and not fits:
        fields["prompt"] = [any_prompt(chance) for _ in range(2)]
    elif chance.random() < 0.15 and not fits:
        fields["prompt"] = [chance.randrange(5, 8000) for _ in range(20)]
    if chance.random() < 0.4 and not fits:
        fields["logprobs"] = chance.randint(0, 5)
    elif chance.random() < 0.3:
        fields["echo"] = True
    if chance.random() < 0.1:
        fields["prediction"] = {"type": "content", "content": REPEATED * 3}
    return Asked("/v1/completions", fields, fits)


def _chat(chance: Random) -> Asked:
    messages = [{"role": "user", "content": any_prompt(chance)}]
    fields = {"messages": messages, "max_tokens": _tokens(chance), **_sampling(chance), **_constraint(chance)}
    if chance.random() < 0.3:
        fields["n"] = chance.randint(2, 3)
    if chance.random() < 0.4:
        fields |= {"logprobs": True, "top_logprobs": chance.randint(0, 5)}
    return Asked("/v1/chat/completions", fields)


def _llama_completion(chance: Random) -> Asked:
    fields = {"prompt": any_prompt(chance), "n_predict": _tokens(chance), "return_tokens": True, **_sampling(chance)}
    fields |= _constraint(chance)
    if chance.random() < 0.2:
        fields["prompt"] = [chance.randrange(5, 8000) for _ in range(20)]
    if chance.random() < 0.4:
        fields["n_probs"] = chance.randint(1, 5)
    if chance.random() < 0.2:
        fields["ignore_eos"] = True
    if chance.random() < 0.2:
        fields["n_cmpl"] = 2
    return Asked("/completion", fields)


def _infill(chance: Random) -> Asked:
    fields = {"input_prefix": any_prompt(chance), "prompt": chance.choice(["", "    x = ", "é"]),
              "input_suffix": chance.choice(["", "\n", ")\n", "\n    return x\n"]), "n_predict": _tokens(chance),
              "return_tokens": True, **_sampling(chance)}  # fmt: skip
    fits = chance.random() < 0.2
    if fits:
        fields |= {"language": "python"}
    elif chance.random() < 0.4:
        fields["n_probs"] = chance.randint(1, 3)
    if chance.random() < 0.3:
        fields["input_extra"] = [{"filename": "a.py", "text": any_prompt(chance)}]
    return Asked("/infill", fields, fits)


def _fim(chance: Random) -> Asked:
    fields = {"prompt": any_prompt(chance), "max_tokens": max(1, _tokens(chance)),
              "suffix": chance.choice(["", "\n", ")\n", "\n    return x\n"]), "temperature": 0}  # fmt: skip
    if chance.random() < 0.5:
        fields |= {"temperature": 0.8, "random_seed": chance.randrange(1, 10_000)}
    return Asked("/v1/fim/completions", fields)


def stops_for(chance: Random, texts: list[str]) -> list[str]:
    """Stop texts that overlap, most of them parts of what a request is answered without them."""
    text = chance.choice(texts) or "x"
    start = chance.randrange(len(text))
    near = text[max(0, start - 6) : start + 8]
    found = []
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(near))
        found.append(near[at : at + chance.randint(1, 6)])
    if chance.random() < 0.3:
        found.append(near[chance.randrange(len(near)) :] + "never")
    return found
