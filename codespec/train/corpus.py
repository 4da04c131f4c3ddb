"""Collect permissively licensed source files into one corpus, with a manifest of where each came from.

Four kinds of folder are understood: a Python standard library, a ``site-packages``, a ``node_modules``, and a folder
of unpacked Debian packages, of sources or with ``dpkg -x``. Any other folder is taken as the user's own code.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from email import message_from_string
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from datasketch import MinHash, MinHashLSH
from tqdm import tqdm

from codespec.languages import PLAIN, by_path
from codespec.privacy.secrets import holds_key, is_secret

# Folders that hold no code a person would write: caches, other people's vendored copies, test data.
SKIPPED_FOLDERS = {
    "__pycache__", "node_modules", "site-packages", "test", "tests", "idle_test", "testing",
    "_vendor", "vendor", "vendored", "dist", "build", "locale", "third_party", ".git", ".venv",
}  # fmt: skip

PERMISSIVE = re.compile(
    r"\b(MIT|Expat|BSD|BSL|Boost|Apache|ISC|PSF|Python Software Foundation|0BSD|Unlicense|CC0|Zlib|BlueOak|curl|"
    r"PostgreSQL|public.domain)",
    re.IGNORECASE,
)
RESTRICTED = re.compile(
    r"\b(A?L?GPL|GNU|GFDL|MPL|Artistic|Mozilla|EPL|CDDL|EUPL|Proprietary|NonCommercial|NC)\b", re.IGNORECASE
)

# In a training sample these names are the tokens themselves.
SPECIAL_NAMES = re.compile(r"<\|(endoftext|fim_\w+|repo_name|file_sep)\|>")

OWN = "the user's own"
"""Instead of a licence: of folders that are no packages, where secrets may lie as well."""

DEBIAN_LIBRARIES = ("usr/share/cargo/registry", "usr/share/gocode/src", "usr/lib")

MAX_CHARS = 120_000
MIN_CHARS = 120
LONGEST_CHARACTER = 4
"""Bytes of UTF-8."""

HELD_OUT_PERCENT = 4

PACKAGE_CHARS = 2_000_000

ALIKE = 0.7
"""The share of common lines (Jaccard) from which two files are near duplicates, estimated with this many hashes."""

PERMUTATIONS = 64


@dataclass(frozen=True)
class Source:
    """A package, and the licence its files are used under."""

    package: str
    version: str
    licence: str


@dataclass(frozen=True)
class CorpusDocument:
    """One source file of the corpus."""

    package: str
    path: str
    language: str
    text: str


def is_permissive(licence: str) -> bool:
    """Whether a licence text or SPDX expression names only permissive licences."""
    return bool(PERMISSIVE.search(licence)) and not RESTRICTED.search(licence)


def is_held_out(package: str) -> bool:
    """Whether all files of a package are kept for validation, decided by a hash of its name."""
    return hashlib.blake2b(package.encode(), digest_size=4).digest()[0] * 100 // 256 < HELD_OUT_PERCENT


def _distribution_licence(distribution: importlib.metadata.Distribution) -> str:
    # `.json` holds the same fields and, unlike the message object, a stable type.
    metadata: dict[str, Any] = distribution.metadata.json
    classifiers = [c for c in metadata.get("classifier", []) if c.startswith("License ::")]
    stated = [metadata.get("license_expression", ""), *classifiers]
    if not any(stated):
        stated = [str(metadata.get("license", "")).strip().split("\n")[0][:80]]
    return "; ".join(s.replace("License :: OSI Approved :: ", "") for s in stated if s)


def _site_packages(folder: Path) -> Iterator[tuple[Source, Path, Path]]:
    for distribution in importlib.metadata.distributions(path=[str(folder)]):
        licence = _distribution_licence(distribution)
        name = distribution.metadata["Name"] or "?"
        if not is_permissive(licence):
            continue
        source = Source(name, distribution.version, licence)
        for file in distribution.files or []:
            yield source, folder / file, folder


def _standard_library(folder: Path) -> Iterator[tuple[Source, Path, Path]]:
    version = folder.name.removeprefix("python")
    for path in sorted(folder.rglob("*.py")):
        # Each module is a package of its own, so that a part of the library can be held out.
        module = path.relative_to(folder).parts[0].removesuffix(".py")
        yield Source(f"cpython/{module}", version, "PSF-2.0"), path, folder


def _node_modules(folder: Path) -> Iterator[tuple[Source, Path, Path]]:
    for manifest in sorted(folder.rglob("package.json")):
        try:
            package = json.loads(manifest.read_text("utf-8"))
            source = Source(f"npm/{package['name']}", package["version"], str(package["license"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not is_permissive(source.licence):
            continue
        for path in sorted(manifest.parent.rglob("*")):
            if "node_modules" not in path.relative_to(manifest.parent).parts:
                yield source, path, manifest.parent.parent


def _debian(folder: Path) -> Iterator[tuple[Source, Path, Path]]:
    for root in sorted(each for each in folder.iterdir() if each.is_dir()):
        copyright_files = [root / "debian" / "copyright", *sorted(root.glob("usr/share/doc/*/copyright"))]
        file = next((each for each in copyright_files if each.is_file()), None)
        if file is None:
            continue
        stanzas = _debian_stanzas(file.read_text("utf-8", "replace"))
        base = root
        if file != copyright_files[0]:
            # What is installed lies elsewhere than the patterns say: all or nothing.
            base = next((root / each for each in DEBIAN_LIBRARIES if (root / each).is_dir()), root)
            stanzas = [("*", "; ".join(dict.fromkeys(kind for pattern, kind in stanzas if pattern != "debian/*")))]
        kinds = "; ".join(sorted({kind for _, kind in stanzas if is_permissive(kind)}))
        name, _, version = root.name.partition("_")
        source = Source(f"debian/{name}", version, kinds)
        for path in sorted(base.rglob("*")):
            relative = path.relative_to(root).as_posix()
            # The last pattern that matches is the one that counts.
            licence = next((kind for pattern, kind in reversed(stanzas) if fnmatchcase(relative, pattern)), "")
            if is_permissive(licence):
                yield source, path, base


def _debian_stanzas(text: str) -> list[tuple[str, str]]:
    """Patterns of files and their licences (debian.org/doc/packaging-manuals/copyright-format/1.0)."""
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        fields = message_from_string(paragraph.strip() + "\n")
        licence = str(fields.get("License", "")).split("\n")[0].strip()
        found += [(pattern, licence) for pattern in str(fields.get("Files", "")).split()]
    return found


def _is_debian(folder: Path) -> bool:
    return any(folder.glob("*/debian/copyright")) or any(folder.glob("*/usr/share/doc/*/copyright"))


def _candidates(folder: Path) -> Iterator[tuple[Source, Path, Path]]:
    if any(folder.glob("*.dist-info")):
        yield from _site_packages(folder)
    elif (folder / "os.py").exists() and (folder / "abc.py").exists():
        yield from _standard_library(folder)
    elif folder.name == "node_modules":
        yield from _node_modules(folder)
    elif _is_debian(folder):
        yield from _debian(folder)
    else:
        for path in sorted(folder.rglob("*")):
            yield Source(folder.name, "", OWN), path, folder.parent


def _read(path: Path) -> str | None:
    """The text of a file worth learning from, or None."""
    try:
        if path.stat().st_size > MAX_CHARS * LONGEST_CHARACTER:
            return None
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not MIN_CHARS <= len(text) <= MAX_CHARS:
        return None
    lines = text.splitlines()
    looks_generated = "\0" in text or len(text) / len(lines) > 90 or max(map(len, lines)) > 1_000
    if looks_generated or SPECIAL_NAMES.search(text) or holds_key(text):
        return None
    return text.replace("\r\n", "\n")


def collect(folders: Iterable[Path]) -> Iterator[tuple[Source, CorpusDocument]]:
    """Every usable file under the folders: exact duplicates once, of a package not more than ``PACKAGE_CHARS``."""
    seen: set[bytes] = set()
    size: dict[tuple[str, str], int] = {}
    for folder in folders:
        for source, path, root in _candidates(folder):
            language = by_path(path.name)
            whole = (source.package, language.id)
            if language is PLAIN or (source.licence != OWN and size.get(whole, 0) > PACKAGE_CHARS):
                continue
            relative = path.relative_to(root)
            if SKIPPED_FOLDERS.intersection(part.lower() for part in relative.parts[:-1]) or not path.is_file():
                continue
            text = _read(path)
            if text is None or (source.licence == OWN and is_secret(relative.as_posix(), text)):
                continue
            digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                size[whole] = size.get(whole, 0) + len(text)
                yield source, CorpusDocument(source.package, relative.as_posix(), language.id, text)


def default_folders() -> list[Path]:
    """The standard library and the packages of the running interpreter."""
    import sysconfig

    paths = sysconfig.get_paths()
    return [Path(paths["stdlib"]), Path(paths["purelib"])]


def build(folders: Iterable[Path], out: Path) -> dict[str, int]:
    """Write ``corpus.jsonl.gz`` and ``manifest.json.gz`` under ``out``; return characters per language.

    Raises:
        ValueError: nothing usable was found.
    """
    out.mkdir(parents=True, exist_ok=True)
    found = []
    with tqdm(unit=" files", desc="corpus") as bar:
        for each in collect(folders):
            found.append(each)
            bar.update()
    if not found:
        raise ValueError("no usable source file in the corpus folders; name others with --corpus")
    # What is held out comes last, so that nothing of it is much like anything that is learnt.
    found.sort(key=lambda each: is_held_out(each[1].package))
    packages: dict[str, dict[str, Any]] = {}
    characters: dict[str, int] = {}
    temporary = out / "corpus.jsonl.gz.tmp"
    with gzip.open(temporary, "wt", encoding="utf-8", compresslevel=4) as file:
        for source, document in unlike(found):
            file.write(json.dumps(asdict(document)) + "\n")
            entry = packages.setdefault(
                source.package,
                {**asdict(source), "split": "held out" if is_held_out(source.package) else "train", "files": []},
            )
            entry["files"].append(document.path)
            characters[document.language] = characters.get(document.language, 0) + len(document.text)
    said = ", ".join(f"{name} {size / 1e6:,.1f}" for name, size in sorted(characters.items(), key=lambda x: -x[1]))
    print(f"corpus: {sum(characters.values()) / 1e6:,.1f}M characters ({said})", file=sys.stderr)
    # mtime=0: the same corpus gives the same file
    (out / "manifest.json.gz").write_bytes(
        gzip.compress(json.dumps(sorted(packages.values(), key=lambda p: str(p["package"]))).encode(), mtime=0)
    )
    temporary.replace(out / "corpus.jsonl.gz")
    return characters


def unlike(found: Sequence[tuple[Source, CorpusDocument]]) -> Iterator[tuple[Source, CorpusDocument]]:
    """Those whose lines are not for the most part those of an earlier one (MinHash, Broder 1997)."""
    index = MinHashLSH(threshold=ALIKE, num_perm=PERMUTATIONS)
    for number, (source, document) in enumerate(tqdm(found, unit=" files", desc="near duplicates")):
        # The kind of hash does not matter here, only its speed.
        lines = {line.strip().encode() for line in document.text.split("\n")} - {b""}
        sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)
        sketch.update_batch(lines)
        if not index.query(sketch):
            index.insert(number, sketch, check_duplication=False)
            yield source, document


def load(out: Path) -> list[CorpusDocument]:
    """The documents that ``build`` wrote."""
    with gzip.open(out / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        return [CorpusDocument(**json.loads(line)) for line in file]
