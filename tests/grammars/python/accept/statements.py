"""Docstring."""

from __future__ import annotations

import a.b.c as d, e
from . import x
from ...a.b import (c as d, e,)
from .import y
from a import *

x = y = 1
x: int = 3
(x.y): int
a, *b = c,
a[1], (b, c), [d] = 1, (2, 3), [4]
x += yield
x **= 2; y //= 3; z @= 4;
del a, b[0], (c.d)
assert x, "no"
global g, h
raise
raise X from None
pass
return
return *a, b
print(*a, **b, c=1)
type X[T: int, *Ts, **P] = dict[T, int]
match = case = type = _ = 1
match[0]: int = 3
match (x)
nonlocal q
