"""A mapping that keeps only what was used lately."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(MutableMapping[K, V]):
    """A mapping of limited size: beyond it the least recently used entries are dropped. For one thread at a time.

    An entry is used when it is set and by ``use``; looking at it in any other way leaves the order as it is. Iteration
    begins with the least recently used entry.

    Args:
        limit: entries, or the sum of their sizes, that are kept; the latest entry is, however large.
        size: of an entry, always the same for the same one; None: each counts as 1.
        dropped: called with an entry that was dropped for want of room, not with one that is deleted or replaced.
    """

    def __init__(
        self,
        limit: int,
        size: Callable[[K, V], int] | None = None,
        dropped: Callable[[K, V], object] | None = None,
    ) -> None:
        self._limit, self._size, self._dropped = limit, size or (lambda key, value: 1), dropped
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._total = 0

    def use(self, key: K) -> V | None:
        """The value of ``key``, now the most recently used; None where there is none."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __setitem__(self, key: K, value: V) -> None:
        if key in self._entries:
            del self[key]
        self._entries[key] = value
        self._total += self._size(key, value)
        while self._total > self._limit and len(self._entries) > 1:
            oldest = next(iter(self._entries))
            value = self.pop(oldest)
            if self._dropped is not None:
                self._dropped(oldest, value)

    def __delitem__(self, key: K) -> None:
        self._total -= self._size(key, self._entries.pop(key))

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
