"""From the settings to what holds where a request says nothing."""

from __future__ import annotations

from codespec.config import Config
from codespec.http.apis.common_fields import Defaults
from codespec.http.limits import HttpLimits
from codespec.models.registry import find_target
from codespec.protocols import Sampling


def defaults_of(config: Config) -> Defaults:
    """The defaults of a server with these settings.

    Raises:
        CodespecError: there is no such target.
    """
    sampling = Sampling(temperature=config.temperature, seed=config.seed)
    own = config.remote.model if config.remote.kind else find_target(config.target.path).stem
    names = tuple(dict.fromkeys(filter(None, (own, "codespec"))))
    return Defaults(sampling, config.max_tokens, names, config.draft, HttpLimits())
