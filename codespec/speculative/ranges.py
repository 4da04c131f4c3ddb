"""The ranges of the settings of sampling."""

from __future__ import annotations

import math

from codespec.protocols import CodespecError, Sampling


def check(sampling: Sampling) -> None:
    """Check that every setting is in its range.

    Raises:
        CodespecError: a setting is out of its range.
    """

    def require(fine: bool, name: str, rule: str) -> None:
        if not fine:
            raise CodespecError(f"{name} is {getattr(sampling, name)}; it must be {rule}")

    require(0 <= sampling.temperature < math.inf, "temperature", "0 or more")
    require(sampling.top_k >= 0, "top_k", "0 (off) or more")
    require(0 <= sampling.top_p <= 1, "top_p", "between 0 and 1")
    require(0 <= sampling.min_p <= 1, "min_p", "between 0 and 1")
    require(0 < sampling.repeat_penalty < math.inf, "repeat_penalty", "above 0")
    require(math.isfinite(sampling.frequency_penalty), "frequency_penalty", "a finite number")
    require(math.isfinite(sampling.presence_penalty), "presence_penalty", "a finite number")
    require(sampling.logprobs is None or sampling.logprobs >= 0, "logprobs", "0 or more")
    require(sampling.penalty_window >= 0, "penalty_window", "0 (off) or more")
    require(all(token >= 0 for token in sampling.logit_bias), "logit_bias", "keyed by token ids")
    # -inf bans a token; nan and +inf mean nothing.
    require(all(value < math.inf for value in sampling.logit_bias.values()), "logit_bias", "of numbers or -inf")
