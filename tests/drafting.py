"""An engine whose drafts have something to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from codespec import LocalEngine
from codespec.draft.costs import LONGEST, CostCurve
from codespec.models.registry import EMBEDDED_TARGET


@contextlib.contextmanager
def drafting_engine() -> Iterator[LocalEngine]:
    """The embedded target, exact, as if rows were nearly free, however busy the machine is: at its own costs hardly
    anything would be worth proposing."""
    with contextlib.closing(LocalEngine(EMBEDDED_TARGET, exact=True)) as engine:
        engine.costs.replace(CostCurve((0,), (1, LONGEST), ((20.0, 21.0),)))
        engine.costs.fixed = True
        yield engine
