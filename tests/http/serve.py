"""``python -m tests.http.serve``: a server for tests on any free port, with bounds that can be set.

    python -m tests.http.serve [--target FILE] [--limits JSON] [--key KEY] [--debug]

Says ``listening on URL`` and ``the model is loaded`` on the standard error.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys

from codespec import Config, Sampling
from codespec.config_sections import TargetConfig
from codespec.daemon.own_models import OwnModels
from codespec.http.apis.common_fields import Defaults
from codespec.http.limits import HttpLimits
from codespec.http.security import Access
from codespec.http.server import serve_http


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.http.serve", description=__doc__)
    parser.add_argument("--target", default="")
    parser.add_argument("--limits", type=json.loads, default={})
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--debug", action="store_true", help="log all that any package logs")
    options = parser.parse_args()
    if options.debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    config = Config(target=TargetConfig(path=options.target), time_budget_ms=0)
    defaults = Defaults(Sampling(), 128, ("target", "codespec"), config.draft, HttpLimits(**options.limits))
    access = Access("127.0.0.1", tuple(options.key))
    say = lambda message: print(message, file=sys.stderr, flush=True)  # noqa: E731
    return serve_http(("127.0.0.1", 0), access, defaults, config, OwnModels(), say)


if __name__ == "__main__":
    raise SystemExit(main())
