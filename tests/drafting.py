"""An engine whose drafts have something to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codespec import LocalEngine
from codespec.draft.costs import LONGEST, CostCurve
from codespec.models.registry import EMBEDDED_TARGET


@contextlib.contextmanager
def drafting_engine(path: Path = EMBEDDED_TARGET, exact: bool = True, **options: Any) -> Iterator[LocalEngine]:
    """A target, the embedded one if no other, as if rows were nearly free, however busy the machine is: at its own
    costs hardly anything would be worth proposing."""
    with contextlib.closing(LocalEngine(path, exact=exact, **options)) as engine:
        engine.costs.replace(CostCurve((0,), (1, LONGEST), ((20.0, 21.0),)))
        engine.costs.fixed = True
        yield engine
