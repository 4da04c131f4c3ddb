"""Graphs of names."""

from __future__ import annotations

from collections.abc import Mapping


def components(edges: Mapping[str, list[str]]) -> list[list[str]]:
    """Groups of names that reach each other, each after those that it reaches, with its names in the order of
    ``edges``; single names only where they reach themselves.

    Strongly connected components (Tarjan, SIAM Journal on Computing 1(2), 1972), without recursion.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    groups: list[list[str]] = []
    order = {name: at for at, name in enumerate(edges)}
    for start in edges:
        stack = [(start, iter(edges[start]))] if start not in index else []
        while stack:
            name, targets = stack[-1]
            if name not in index:
                index[name] = low[name] = len(index)
                path.append(name)
                on_path.add(name)
            for target in targets:
                if target not in index:
                    stack.append((target, iter(edges[target])))
                    break
                if target in on_path:
                    low[name] = min(low[name], index[target])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[name])
                if low[name] == index[name]:
                    group = path[len(path) - 1 - path[::-1].index(name) :]
                    del path[-len(group) :]
                    on_path.difference_update(group)
                    if len(group) > 1 or name in edges[name]:
                        groups.append(sorted(group, key=order.__getitem__))
    return groups
