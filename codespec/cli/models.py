"""``codespec models``: its commands, which import what is heavy when they run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codespec import child_progress
from codespec.cli import show
from codespec.errors import CodespecError
from codespec.exit_codes import ANSWER_IS_NO, DONE
from codespec.terminal import printable, write_own

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.models.checksums import Report
    from codespec.models.info import ModelInfo
    from codespec.models.suggest import Fit

FRACTION = 2
"""A model that has at most one ``FRACTION``-th of another's parameters may be its draft."""


def run_models_list(options: argparse.Namespace) -> int:
    """``codespec models list``. A file that is no model is reported on standard error; the exit code stays 0."""
    from codespec.models.info import inspect
    from codespec.models.installed import models_in_packages
    from codespec.models.registry import EMBEDDED, adapters_folder, is_whole, models_folder

    infos, bad = [], []
    folders = (EMBEDDED, models_folder())
    paths = [path for folder in folders for path in sorted(folder.glob("*.gguf"), key=lambda each: each.stem)]
    for name, path in [*((each.stem, each) for each in filter(is_whole, paths)), *models_in_packages().items()]:
        try:
            infos.append((name, inspect(path)))
        except CodespecError as error:
            bad.append(str(error))
    if options.json:
        print(json.dumps([_plain(info) for _, info in infos], indent=1))
    else:
        for line in _table(infos):
            print(line)
        for path in sorted(adapters_folder().glob("*.gguf")):
            print(f"{path.stem:32} {'LoRA adapter':>21} {path.stat().st_size / 1e6:>9,.1f}")
    for problem in bad:
        show.error(problem)
    return DONE


def run_models_inspect(options: argparse.Namespace) -> int:
    """``codespec models inspect``. With ``--verify`` a changed file raises ``CodespecError``."""
    from codespec.models.checksums import verify
    from codespec.models.info import inspect
    from codespec.models.registry import file_or_model

    path = file_or_model(options.model)
    if options.verify:
        verify(path, _transfer())
    info = inspect(path)
    if options.json:
        print(json.dumps(_plain(info), indent=1))
        return DONE
    for name, value in _lines(info):
        print(f"{name:14} {value}")
    if options.verify:
        print(f"{'checksum':14} as fetched")
    return DONE


def run_models_pull(options: argparse.Namespace) -> int:
    path = fetch(options.model, options.unverified)
    _tell_of_filling_in(path)
    print(f"{path}\nuse it with `codespec models use {path.stem}`")
    return DONE


def fetch(name: str, unverified: bool = False) -> Path:
    """Fetch a model, and show how far that is; returns its file.

    Raises:
        CodespecError: as ``look_up`` and ``pull``.
    """
    from codespec.models.checksums import is_made_of
    from codespec.models.hub import look_up, pull
    from codespec.models.index import look_through

    offer = look_up(name)
    print(f"{offer.name}: {offer.size / 1e6:,.1f} MB from {offer.files[0].repository}, licence {offer.licence or '?'}")
    path = pull(offer, _transfer(), unverified=unverified)
    if is_made_of(path, offer.files[0].sha256):
        print(f"kept in 8 bits, {path.stat().st_size / 1e6:,.1f} MB, which this machine reads quicker")
    look_through()  # so that no editor has to wait for that
    return path


def _tell_of_filling_in(target: Path) -> None:
    """Say where a model does not read what follows the cursor."""
    from codespec.models.fitted import filling_adapter
    from codespec.models.info import inspect

    info = inspect(target)
    if info.fim is None and filling_adapter(target) is None:
        show.error(
            f"{info.name} was not trained to fill in the middle: what follows the cursor ends its texts and chooses "
            "among them, but the model does not read it; `codespec train fim` teaches it"
        )


def run_models_remove(options: argparse.Namespace) -> int:
    from codespec.models.hub import remove

    for path in remove(options.model):
        print(f"{path} is deleted")
    return DONE


def run_models_use(options: argparse.Namespace) -> int:
    """``codespec models use``."""
    from codespec.config import load, user_file
    from codespec.models.choose import choose
    from codespec.models.info import inspect
    from codespec.models.registry import file_or_model

    settings, messages = load()
    for message in messages:
        show.error(message)
    role = options.role
    name = options.model
    if name in ("auto", "none"):
        if role in ("target", "edit"):
            raise CodespecError(f"{name!r} is a choice of drafts; give a model by its name or path")
        role = "draft"
    else:
        path = file_or_model(name)
        name = str(path) if Path(name).expanduser().is_file() else name.removesuffix(".gguf")
        role = role or _role(path, _current_target(settings), bool(options.language))
        inspect(path)
    if role != "draft" and options.language:
        raise CodespecError("only a draft is for one language; leave out --for, or say --as draft")
    if role == "target":
        _tell_of_filling_in(path)
    choose(user_file(), role, name, options.language or "")
    for message in set(load()[1]) - set(messages):  # such as a language that nobody knows
        show.error(message)
    where = f" of {options.language}" if options.language else " of every language" if role == "draft" else ""
    what = "model of next edits" if role == "edit" else role
    print(f"{name} is the {what}{where} now ({user_file()}); editors take it over at once")
    return DONE


def run_models_suggest(options: argparse.Namespace) -> int:
    from codespec.models.catalogue import CATALOGUE, EDIT_MODELS, PACKAGED
    from codespec.models.suggest import ANSWER, FIRST_PROMPT, best, fits, table, this_machine

    machine = this_machine()
    found, edits = fits(machine, (*PACKAGED, *CATALOGUE)), fits(machine, EDIT_MODELS)
    chosen = best(found)
    if options.json:
        fields = {
            "best": _plain_fit(chosen) if chosen else None,
            "models": [_plain_fit(each) for each in found],
            "edit_models": [_plain_fit(each) for each in edits],
        }
        about = {
            "memory": machine.memory,
            "bandwidth": machine.bandwidth,
            "compute": machine.compute,
            "gpus": [asdict(each) for each in machine.gpus],
        }
        print(json.dumps({**about, **fields}, indent=1))
        return DONE if chosen else ANSWER_IS_NO
    memory = f"{machine.memory / 2**30:.0f} GiB of memory" if machine.memory else "memory unknown"
    speeds = f"read at {machine.bandwidth / 1e9:.0f} GB/s; {machine.compute / 1e9:,.0f} GFLOP/s"
    print(f"{', '.join(machine.devices)}; {memory}, {speeds}")
    for line in table(found, chosen):
        print(line)
    print(
        f"about, on the CPU: tokens a second without drafts, which add half as much again or more; seconds to {ANSWER} "
        f"tokens with them,\nthe first time in a file of {FIRST_PROMPT:,} tokens and later on;\n`-` does not fit, "
        "`?` was not tried with codespec"
    )
    if machine.gpus:
        free = sum(each.free for each in machine.gpus) / 2**30
        print(f"`GPU`: fits whole into the {free:.1f} GiB that are free there; how fast that is was not measured")
    print("\nmodels of next edits, which write more at a time: pull one, then `codespec models use NAME --as edit`")
    for line in table(edits):
        print(line)
    if chosen is None:
        print("\nnone of the others is fast enough here to type along with; the embedded model needs nothing")
        return ANSWER_IS_NO
    print(f"\ncodespec models pull {chosen.model.name} && codespec models use {chosen.model.name}")
    if chosen.draft is not None:
        print(f"codespec models pull {chosen.draft.name} && codespec models use {chosen.draft.name} --as draft")
    return DONE


def _plain_fit(fit: Fit) -> dict[str, Any]:
    return {
        "model": fit.model.name,
        "draft": fit.draft.name if fit.draft is not None else "",
        "licence": fit.model.licence,
        "download": round(fit.download),
        "memory": round(fit.need),
        "tokens_per_second": round(fit.speed, 1),
        "first_seconds": round(fit.first, 2),
        "later_seconds": round(fit.later, 2),
        "fits": fit.fits,
        "on_gpu": fit.on_gpu,
    }


def _current_target(settings: Config) -> Path | None:
    """The target of the settings; None where its file is gone."""
    from codespec.models.registry import find_target

    try:
        path = find_target(settings.target.path)
    except CodespecError:
        return None
    return path if path.is_file() else None


def _role(path: Path, target: Path | None, for_language: bool) -> str:
    from codespec.models.info import inspect
    from codespec.models.registry import EMBEDDED_TARGET

    if for_language:
        return "draft"
    if inspect(path).edits:
        return "edit"
    if target is None or path in (target, EMBEDDED_TARGET):
        return "target"
    return "draft" if inspect(path).parameters * FRACTION <= inspect(target).parameters else "target"


def _transfer() -> Report:
    """A line on standard error that shows how far a download is; where that is no terminal, one for every tenth."""
    latest: dict[str, int] = {}
    percent = 1 if sys.stderr.isatty() or child_progress.is_read() else 10

    def report(what: str, done: int, size: int) -> None:
        reached = 100 * done // max(1, size) // percent
        if reached == latest.get(what):
            return
        latest[what] = reached
        sized = size > 1000  # else it is a count of steps
        text = f"{what} {done / 1e6:,.1f} of {size / 1e6:,.1f} MB" if sized else what
        if child_progress.is_read():
            child_progress.tell(what, done / max(1, size))
        elif sys.stderr.isatty():
            write_own(f"{show.CLEAR_LINE}{printable(text)}" + "\n" * (done >= size), sys.stderr)
        elif sized or not done:
            print(text, file=sys.stderr)

    return report


def _plain(info: ModelInfo) -> dict[str, Any]:
    fim = info.fim
    return {
        "path": str(info.path),
        "name": info.name,
        "architecture": info.architecture,
        "parameters": info.parameters,
        "quantization": info.quantization,
        "size": info.size,
        "context": info.context,
        "licence": info.licence,
        "vocabulary": info.vocabulary,
        "vocabulary_size": info.vocabulary_size,
        "trimmed": info.trimmed,
        "kv_bytes": info.kv_bytes,
        "family": info.family,
        "edits": info.edits,
        "fim": None
        if fim is None
        else {
            "order": fim.order,
            "prefix": fim.prefix,
            "suffix": fim.suffix,
            "middle": fim.middle,
            "file_separator": fim.file_separator,
            "repository": fim.repository,
        },
    }


def _lines(info: ModelInfo) -> Iterator[tuple[str, str]]:
    from codespec.models.fitted import filling_adapter

    fim = info.fim
    yield "file", f"{info.path} ({info.size / 1e6:,.1f} MB)"
    yield "name", info.name
    yield "architecture", info.architecture
    yield "parameters", f"{info.parameters:,}" if info.parameters else "none: a vocabulary only"
    yield "quantization", info.quantization or "not said"
    yield "context", f"{info.context:,} tokens, {info.kv_bytes:,} bytes of KV cache each at 16 bits"
    yield "licence", info.licence or "not said"
    of = "of a target's, for whose family alone it drafts: " if info.trimmed else ""
    yield "vocabulary", f"{info.vocabulary_size:,} tokens, {of}{info.vocabulary[:16]}"
    adapter = filling_adapter(info.path) if fim is None else None
    taught = f"none: {adapter} teaches it to fill in the middle" if adapter else "none: it cannot fill in the middle"
    yield "family", info.family or taught
    if fim is not None:
        named = {
            "prefix": fim.prefix,
            "suffix": fim.suffix,
            "middle": fim.middle,
            "file": fim.file_separator,
            "repository": fim.repository,
        }
        tokens = ", ".join(f"{name} {token}" for name, token in named.items() if token is not None)
        yield "fill-in-middle", f"{fim.order}: {tokens}"


def _table(infos: list[tuple[str, ModelInfo]]) -> Iterator[str]:
    """The models under the names by which they are asked for."""
    from codespec.config import load

    settings, _ = load()
    target = _current_target(settings)
    vocabularies = next((info.vocabularies for _, info in infos if info.path == target), frozenset())
    drafts = {"": settings.draft, **{name: own.draft for name, own in settings.language.items() if own.draft}}
    yield f"{'model':32} {'parameters':>12} {'kind':8} {'MB':>9}  {'family':10} use"
    for name, info in infos:
        languages = [language for language, draft in drafts.items() if draft in (name, str(info.path))]
        use = "target" if info.path == target else ""
        if languages:
            use = "draft" + "".join(f" {language}" for language in languages)
        elif not use and info.edits:
            use = "next edits"
        elif not use and info.vocabularies & vocabularies:
            use = f"can draft {', '.join(info.languages)}".rstrip()
        yield (
            f"{name:32} {info.parameters:>12,} {info.quantization:8} {info.size / 1e6:>9,.1f}  "
            f"{info.family or '-':10} {use}"
        ).rstrip()
