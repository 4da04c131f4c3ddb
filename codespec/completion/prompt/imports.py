"""Signatures of the names that a file imports from its own workspace, for the start of its prompts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from codespec.languages import Language, by_id, by_path, load
from codespec.line_ends import without_lone_returns
from codespec.privacy.secrets import is_secret
from codespec.protocols import Snippet
from codespec.recent import Recent
from codespec.syntax.names import DEFAULT, EVERYTHING, Definition, Import, Outline, Outliner

LARGEST = 200_000
"""Bytes of a file that is read."""
MOST_MODULES = 16
"""Imported modules of one file that are shown."""
MOST_CHARACTERS = 1_200
"""Characters of the signatures of one module."""
BUDGET = 4_000
"""Characters of all signatures together."""
KEPT = 256
"""Files whose outlines are kept."""
_DEEPEST = 3  # modules that pass on what they import


class Modules(Protocol):
    """What finds the files of a language's modules."""

    def files(self, found: Import, path: Path, folder: Path) -> Iterator[Path]:
        """Where a module that the file ``path`` imports may be, the likeliest place first."""

    def submodule(self, found: Import, name: str, module: Path | None) -> Import | None:
        """The module that a name taken from a module may be; None where it is none.

        Args:
            module: the file of ``found``; None where that is not known.
        """


@dataclass(frozen=True)
class _Module:
    """A file of the workspace as it was read."""

    stamp: tuple[int, int]
    outline: Outline


class ImportedSignatures:
    """Finds the modules that files import, and reads their signatures. For one thread.

    Args:
        may_show: whether the text of a file of a workspace folder may be shown.
    """

    def __init__(self, may_show: Callable[[Path, Path], bool]) -> None:
        self._may_show = may_show
        self._outliner = Outliner()
        self._modules: Recent[Path, _Module] = Recent(KEPT)
        self._files: dict[tuple[Path, str, int], Path | None] = {}

    def snippets(self, text: str, language: str, path: Path, folder: Path) -> tuple[Snippet, ...]:
        """A snippet for each module of ``folder`` that something is imported from, in the order of the imports.

        Args:
            language: LSP identifier.
            path: of the file, links resolved, as in ``folder``.
        """
        if len(text) > LARGEST:
            return ()
        self._files.clear()
        found: dict[Path, list[Definition]] = {}
        own = by_id(language)
        for each in self._outliner.read(text, own).imports:
            for file, definition in self._definitions(each, text, own, path, folder):
                if file != path and (file in found or len(found) < MOST_MODULES):
                    definitions = found.setdefault(file, [])
                    if definition not in definitions:
                        definitions.append(definition)
        return tuple(_snippets(found, folder))

    def _definitions(
        self, found: Import, text: str, language: Language, path: Path, folder: Path
    ) -> Iterator[tuple[Path, Definition]]:
        modules = _modules(language)
        if found.exported or modules is None:
            return
        module = self._find(found, modules, path, folder)
        if not found.names and module is not None:
            yield from self._named(module, _used(found.alias, text), folder)
        for name, alias in found.names:
            inner = modules.submodule(found, name, module)
            submodule = self._find(inner, modules, path, folder) if inner is not None else None
            if submodule is not None:
                yield from self._named(submodule, _used(alias, text), folder)
            elif module is not None:
                yield from self._named(module, _words(text) if name == EVERYTHING else [name], folder)

    def _named(
        self, module: Path, names: Iterable[str], folder: Path, depth: int = 0
    ) -> Iterator[tuple[Path, Definition]]:
        """The definitions of some names of a module, followed to the modules that it imports them from."""
        outline, modules = self._read(module), _modules(by_path(module.name))
        wanted = set(names)
        for definition in outline.definitions:
            if wanted.intersection(definition.names):
                yield module, definition
                wanted.difference_update(definition.names)
        for each in outline.imports if wanted and depth < _DEEPEST else ():
            passed = {there for there, here in each.names if here in wanted}
            if (EVERYTHING, EVERYTHING) in each.names:
                passed = set(wanted)
            origin = self._find(each, modules, module, folder) if passed and modules is not None else None
            if origin is not None and origin != module:
                yield from self._named(origin, passed, folder, depth + 1)

    def _find(self, found: Import, modules: Modules, path: Path, folder: Path) -> Path | None:
        """The file of a module, links resolved; None where it is not one of the workspace that may be shown."""
        key = path.parent, found.module, found.level
        if key not in self._files:
            self._files[key] = self._look_for(modules.files(found, path, folder), folder)
        return self._files[key]

    def _look_for(self, candidates: Iterable[Path], folder: Path) -> Path | None:
        for candidate in candidates:
            try:
                if candidate.is_file():
                    real = Path(os.path.realpath(candidate))
                    return real if real.is_relative_to(folder) and self._may_show(real, folder) else None
            except (OSError, ValueError):
                continue
        return None

    def _read(self, file: Path) -> Outline:
        """What a file defines; nothing where it is too large, cannot be read or holds secrets."""
        try:
            status = file.stat()
            stamp = status.st_mtime_ns, status.st_size
            known = self._modules.get(file)
            if known is None or known.stamp != stamp:
                known = _Module(stamp, self._outline(file) if status.st_size <= LARGEST else Outline())
        except OSError:
            return Outline()
        self._modules[file] = known
        return known.outline

    def _outline(self, file: Path) -> Outline:
        with file.open("rb") as stream:
            text = without_lone_returns(stream.read(LARGEST).decode("utf-8", "replace"))
        return Outline() if is_secret(str(file), text) else self._outliner.read(text, by_path(file.name))


def _modules(language: Language) -> Modules | None:
    found: Modules | None = load(language.modules) if language.modules else None
    return found


def _snippets(found: dict[Path, list[Definition]], folder: Path) -> Iterator[Snippet]:
    left = BUDGET
    for file, definitions in found.items():
        lines: list[str] = []
        room = min(left, MOST_CHARACTERS)
        for each in definitions:
            if len(each.text) < room:
                lines.append(each.text)
                room -= len(each.text) + 1
        if lines:
            text = "\n".join(lines) + "\n"
            left -= len(text)
            yield Snippet(file.relative_to(folder).as_posix(), text)


def _used(name: str, text: str) -> list[str]:
    """The attributes of a module that a text uses, those of its default export among them."""
    return [DEFAULT, *re.findall(rf"(?<![\w.]){re.escape(name)}\s*\.\s*(\w+)", text)] if name else []


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d]\w*", text))
