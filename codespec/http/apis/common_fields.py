"""The fields that the APIs have in common: sampling, bounds, stop texts, drafts."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace
from typing import Any

from codespec.completion.prompt.prompt import file_name
from codespec.completion.request import Request
from codespec.http.apis.constraints import Constrained
from codespec.http.apis.fields import Fields
from codespec.http.limits import HttpLimits
from codespec.http.order import ChatPrompt, FittedPrompt, MiddlePrompt, Order, Prompt, TextPrompt, TokenPrompt
from codespec.languages import LANGUAGES, USUAL, by_path, output_name
from codespec.protocols import Limits, Sampling, Snippet

LONGEST_WINDOW = 8192
MOST_STOPS, MOST_BIASES = 64, 2000
LONGEST_STOP = 1000
BEFORE, AFTER = 64_000, 64_000
"""Characters before a place in a document, at least, and after it, at most, that a completion that fits knows of."""
_OF_A_TOKEN = 16
"""Characters of a token, at most but for few."""
MOST_CHANCES = 20
LONGEST_BIASED = 200


@dataclass(frozen=True)
class Defaults:
    """What holds where a request says nothing: the settings of the server.

    Attributes:
        sampling: as of ``codespec generate``.
        max_tokens: of a completion.
        names: that the model goes by.
        draft: as in the settings.
    """

    sampling: Sampling
    max_tokens: int
    names: tuple[str, ...]
    draft: str
    limits: HttpLimits


def order_of(
    fields: Fields,
    defaults: Defaults,
    constrained: Constrained,
    prompts: tuple[Prompt, ...],
    limits: Limits,
    count: int = 1,
    logprobs: int | None = None,
    echo: bool = False,
) -> Order:
    """The order of a request whose fields are OpenAI's, or llama-server's beside them.

    Raises:
        HttpError: a field is wrong.
    """
    of_file = not isinstance(prompts[0], ChatPrompt)
    return Order(
        prompts=prompts,
        sampling=sampling_of(fields, defaults.sampling),
        limits=_within(limits, len(prompts) * count, logprobs, defaults.limits),
        count=count,
        stops=stops_of(fields),
        grammar=constrained.grammar,
        logprobs=logprobs,
        prediction=prediction_of(fields),
        language=language_of(fields) or USUAL if of_file else "plaintext",
        draft=defaults.draft,
        file_name=file_name_of(fields, constrained) if of_file else "",
        echo=echo,
        session=fields.short("session"),
        **_more_biases(fields),
    )


_NEUTRAL: dict[str, tuple[float, ...]] = {
    "mirostat": (0,),
    "typical_p": (1,),
    "xtc_probability": (0,),
    "dry_multiplier": (0,),
    "dynatemp_range": (0,),
    "top_n_sigma": (-1, 0),
    "adaptive_target": (-1,),
    "min_tokens": (0,),
    "length_penalty": (1,),
}
"""Fields of other servers that are not known here, and the values by which they change nothing."""
_OFF = ("use_beam_search", "post_sampling_probs")


def check_neutral(fields: Fields) -> None:
    """Refuse what would silently be something else than was asked for.

    Raises:
        HttpError: a field of another server has a value that changes texts.
    """
    for name, values in _NEUTRAL.items():
        if fields.number(name, values[0]) not in values:
            raise fields.bad(name, f"{values[0]:g}: it is not known here")
    for name in _OFF:
        if fields.flag(name):
            raise fields.bad(name, "false: it is not known here")


def sampling_of(fields: Fields, defaults: Sampling, seed: str = "seed") -> Sampling:
    """How tokens are chosen. Without ``seed``, where the temperature is above 0, or with -1, every answer is another.

    Raises:
        HttpError: a field is wrong, or asks for what is not known here.
    """
    check_neutral(fields)
    temperature = fields.number("temperature", defaults.temperature, 0, 100)
    # A greedy text is one and the same, also where others are drawn beside it, or instead of one that does not fit.
    usual = defaults.seed or (secrets.randbits(31) if temperature else 0)
    number = fields.integer(seed, usual, -(2**63), 2**64 - 1)
    repeat = fields.number("repeat_penalty", defaults.repeat_penalty, 0.01, 100)
    return Sampling(
        temperature=temperature,
        top_k=max(0, fields.integer("top_k", defaults.top_k, -1)),
        top_p=fields.number("top_p", defaults.top_p, 0, 1),
        min_p=fields.number("min_p", defaults.min_p, 0, 1),
        seed=secrets.randbits(31) if number == -1 else number,
        repeat_penalty=fields.number("repetition_penalty", repeat, 0.01, 100),
        frequency_penalty=fields.number("frequency_penalty", defaults.frequency_penalty, -100, 100),
        presence_penalty=fields.number("presence_penalty", defaults.presence_penalty, -100, 100),
        penalty_window=_window(fields, defaults),
        logit_bias={token: bias for token, bias in _biases(fields).items() if isinstance(token, int)},
    )


def _more_biases(fields: Fields) -> dict[str, Any]:
    """What of an ``Order`` needs the model's vocabulary: biases of texts, and whether a text may end."""
    texts = ((text, bias) for text, bias in _biases(fields).items() if isinstance(text, str))
    return {"text_biases": tuple(texts), "endless": fields.flag("ignore_eos")}


def _window(fields: Fields, defaults: Sampling) -> int:
    window = fields.integer("repeat_last_n", defaults.penalty_window, -1, LONGEST_WINDOW)
    return LONGEST_WINDOW if window == -1 else window


def _biases(fields: Fields) -> dict[int | str, float]:
    """OpenAI's object from token ids to numbers, or llama-server's list of pairs, where ``false`` bans; with
    llama-server's texts instead of ids."""
    value = fields.any("logit_bias")
    rule = "an object from token ids or texts to numbers from -100 to 100, or a list of such pairs"
    if value is None:
        return {}
    pairs = [(_key(name), bias) for name, bias in value.items()] if isinstance(value, dict) else value
    if not isinstance(pairs, list) or len(pairs) > MOST_BIASES:
        raise fields.bad("logit_bias", f"{rule}, at most {MOST_BIASES}")
    try:
        return dict(_bias(*pair) for pair in pairs)
    except (TypeError, ValueError):
        raise fields.bad("logit_bias", rule) from None


def _key(name: str) -> int | str:
    """A token id that is written as a text, as the names of JSON's objects are, or a text."""
    return int(name) if name.isascii() and name.isdigit() and len(name) < 10 else name


def _bias(token: Any, bias: Any) -> tuple[int | str, float]:
    known = (isinstance(token, str) and 0 < len(token) <= LONGEST_BIASED) or (
        isinstance(token, int) and not isinstance(token, bool) and 0 <= token < 2**31
    )
    if known and bias is False:
        return token, -math.inf
    if not known or isinstance(bias, bool) or not -100 <= bias <= 100:
        raise ValueError("out of range")
    return token, float(bias)


def _within(limits: Limits, texts: int, logprobs: int | None, server: HttpLimits) -> Limits:
    """The bounds of each of some texts of which no more tokens are told than a server has memory for.

    Args:
        logprobs: the best tokens that are told at each place, beside the chosen one; None: none are.
    """
    told = texts * (1 if logprobs is None else 1 + logprobs)
    return replace(limits, max_tokens=min(limits.max_tokens, server.told // told))


def check_repeated(fields: Fields, name: str, rule: str, prompts: tuple[Prompt, ...], count: int, most: int) -> None:
    """Refuse a request whose prompts would make its answer far larger than a body may be.

    Args:
        name: of the field that repeats each prompt ``count`` times.
        most: bytes.

    Raises:
        HttpError: it does.
    """
    if count * sum(map(_length, prompts)) > most:
        raise fields.bad(name, f"{rule} where that repeats more than {most >> 20} MiB of prompts")


def _length(prompt: Prompt) -> int:
    """Characters of what an answer repeats of a prompt, about."""
    if isinstance(prompt, TextPrompt):
        return len(prompt.text)
    if isinstance(prompt, TokenPrompt):
        return sum(len(each) if isinstance(each, str) else _OF_A_TOKEN for each in prompt.parts)
    if isinstance(prompt, MiddlePrompt):
        return len(prompt.prefix)
    return len(prompt.before) if isinstance(prompt, FittedPrompt) else 0


def limits_of(fields: Fields, defaults: Defaults, usual: int, *names: str) -> Limits:
    """The bounds of a text: by the first of ``names`` that is there, -1 for as much as the server gives."""
    most = defaults.limits.tokens
    tokens = usual
    for name in reversed(names):
        tokens = fields.integer(name, tokens, -1)
    longest = defaults.limits.seconds * 1e3
    budget = fields.number("t_max_predict_ms", 0)
    budget = budget + max(0.0, fields.number("t_max_prompt_ms", 0)) if budget > 0 else longest  # it counts both
    return Limits(most if tokens < 0 else min(tokens, most), min(budget, longest))


def stops_of(fields: Fields) -> tuple[str, ...]:
    """Texts that end a text."""
    return fields.texts("stop", MOST_STOPS, LONGEST_STOP)


def prediction_of(fields: Fields) -> str:
    """OpenAI's predicted output: a text, or parts that are texts."""
    prediction = fields.object("prediction")
    if prediction is None:
        return ""
    prediction.choice("type", "content", "content")
    return content_of(prediction)


def content_of(fields: Fields) -> str:
    """``content``: a text, or a list of parts that are texts.

    Raises:
        HttpError: a part is no text.
    """
    value = fields.any("content")
    if value is None or isinstance(value, str):
        return value or ""
    parts = fields.objects("content", 1000)
    for part in parts:
        part.choice("type", "text", "text")
    return "".join(part.text("text") for part in parts)


def language_of(fields: Fields) -> str:
    """The language that is named, or that of the ``path``; empty for none."""
    language = fields.short("language")
    if language and language not in LANGUAGES:
        raise fields.bad("language", "an LSP language identifier, such as python")
    return language or (by_path(fields.short("path")).id if "path" in fields else "")


def file_name_of(fields: Fields, constrained: Constrained) -> str:
    """The name of the file that a text belongs to: of its ``path``, or as ``codespec generate`` names it."""
    return file_name(fields.short("path")) or output_name(constrained.name)


def fitted(
    fields: Fields,
    prefix: str,
    suffix: str,
    count: int,
    limits: Limits,
    constrained: bool,
    snippets: tuple[Snippet, ...] = (),
) -> FittedPrompt | None:
    """The prompt of a completion that must fit; None where none is asked for (``fit``, ``language``, ``path``), or no
    token of one.

    Raises:
        HttpError: it is to fit and to match a grammar, too, or to tell probabilities.
    """
    language = language_of(fields)
    told = fields.any("logprobs") is not None or bool(fields.any("n_probs"))
    if not fields.flag("fit", bool(language) and not (constrained or told)) or limits.max_tokens == 0:
        return None
    if constrained:
        raise fields.bad("fit", "false where a grammar is given: what fits is decided by the language's own")
    if told:
        raise fields.bad("fit", "false where probabilities are asked for: those of a text that is cut are not told")
    before, after = part_before(prefix), part_after(suffix)
    request = Request(
        before + after,
        len(before),
        language,
        fields.short("path"),
        count,
        max_tokens=limits.max_tokens,
        context=snippets,
        begins=before == prefix,
        ends=after == suffix,
    )
    return FittedPrompt(request, prefix)


def part_before(text: str) -> str:
    """What a model, a grammar and the judges are shown of the text before a place: all of it, or whole lines, which
    begin at the same one for many requests in a row."""
    steps = len(text) // BEFORE - 1
    if steps < 1:
        return text
    start = steps * BEFORE
    return text[max(start, text.find("\n", start, start + BEFORE // 2) + 1) :]


def part_after(text: str) -> str:
    """The same of the text after it."""
    return text if len(text) <= AFTER else text[: text.rfind("\n", AFTER // 2, AFTER) + 1 or AFTER]
