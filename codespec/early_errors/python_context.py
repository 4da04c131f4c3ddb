"""Python: what surrounds a node."""

from __future__ import annotations

from typing import NamedTuple


class Context(NamedTuple):
    """What surrounds a node.

    Attributes:
        top: whether it is a statement of the module itself.
        code: whether it is in a function or class.
        function: whether it is in a function or lambda.
        asynchronous: whether that is an ``async def``.
        awaits: whether ``await`` may stand there.
        loop: whether ``break`` may.
        comprehension: whether it is evaluated for every element of one.
    """

    top: bool = False
    code: bool = False
    function: bool = False
    asynchronous: bool = False
    awaits: bool = False
    loop: bool = False
    comprehension: bool = False
