"""``codespec doctor``: the state of the installation, and problems with it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from codespec.config import Config, load, user_file
from codespec.early_errors.programs import GOFMT, RUSTFMT
from codespec.models.registry import models_folder
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.llama.devices import Gpu

NOT_EXACT = (
    "exact = no: where two tokens are about as likely, a draft can decide between them; with --exact it never does, "
    "more slowly"
)
INSTALLING = "install codespec again (docs/tutorial.md#1-install)"


def report() -> bool:
    """Print one line for each part; whether all is well."""
    print(f"codespec   {_version('codespec')}, Python {platform.python_version()}, {platform.platform()}")
    problems = []
    for package in ("llama-cpp-python", "llguidance", "pygls", "lark", "numpy"):
        found = _version(package)
        if found == "missing":
            problems.append(f"{package} is missing: {INSTALLING}")
        print(f"{package:18} {found}")
    config, messages = load()
    print(f"settings   {user_file()}{'' if user_file().exists() else ' (not there: defaults)'}")
    folder = models_folder()
    print(f"models     {folder} ({len(list(folder.glob('*.gguf')))} of your own; `codespec models list` names all)")
    judges = [f"{each.command[0]}{'' if each.installed else ' (missing)'}" for each in (GOFMT, RUSTFMT)]
    print(f"judges     {', '.join(judges)}: of completions in Go and Rust, beside the parser")
    for message in messages:
        print(f"  {message}")
    problems += messages
    in_editor = _show_statistics()
    if config.remote.kind:
        _check_remote(config, problems)
    _check_models(config, problems)
    print(f"next: {' '.join((problems[0] if problems else _next(config, in_editor)).split())}")
    return not problems


def _next(config: Config, in_editor: bool) -> str:
    """What to do where nothing is wrong."""
    if not config.remote.kind and not config.target.path:
        unused = _unused_target()
        return f"codespec models use {unused}" if unused else "codespec setup"
    if config.statistics and not in_editor:
        return "no editor has shown a completion yet: set yours up as docs/editors.md says"
    return "all is well; open a file in your editor"


def _unused_target() -> str:
    """The name of the largest model that was fetched and can be a target; empty without one."""
    from codespec.models.info import inspect
    from codespec.models.installed import models_in_packages
    from codespec.models.registry import is_whole

    paths = {path.stem: path for path in filter(is_whole, models_folder().glob("*.gguf"))} | models_in_packages()
    found = [(0, "")]
    for name, path in paths.items():
        with suppress(CodespecError):
            info = inspect(path)
            if not (info.edits or info.trimmed or info.languages):
                found.append((info.parameters, name))
    return max(found)[1]


def _show_statistics() -> bool:
    """Whether an editor has ever shown a completion."""
    from codespec.lsp.statistics import UsageStatistics

    counts = UsageStatistics().read().values()
    if counts:
        shown, accepted = (sum(each[name] for each in counts) for name in ("shown", "accepted"))
        print(f"statistics {shown:,} completions shown, {accepted:,} accepted (on this machine; never sent)")
    return bool(counts)


def _wrong(problem: object, problems: list[str]) -> None:
    print(f"  {problem}", file=sys.stderr)
    problems.append(str(problem))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _check_remote(config: Config, problems: list[str]) -> None:
    """The engine elsewhere: whether it answers, what it is, and what is sent to it how."""
    from codespec.completion.load import load_engine

    try:
        engine = load_engine(config)
    except CodespecError as error:
        return _wrong(error, problems)
    try:
        where = f"{config.remote.kind} at {config.remote.url}"
        print(f"remote     {where}: {engine.name}, context {engine.context_length:,}")
        for name, value in engine.about.items():
            for key, each in value.items() if isinstance(value, dict) else ((name, value),):
                print(f"  {key} = {each}")
        for note in engine.notes:
            print(f"  {note}")
    finally:
        engine.close()


def _check_models(config: Config, problems: list[str]) -> None:
    try:
        from codespec.llama import probe
        from codespec.llama.devices import devices, gpu_backends, gpus, kernels, unused_gpu
        from codespec.llama.model import check_file
        from codespec.models.registry import find_target

        works = probe.extra_buffers_work()
        matrices = "fast matrix kernels work" if works else probe.REMEDY
        print(f"llama.cpp  {matrices}")
        if not works:
            problems.append(probe.REMEDY)
        print(f"built      for GPUs: {', '.join(gpu_backends()) or 'no'}; CPU: {', '.join(kernels()) or 'any'}")
        if unused := unused_gpu():
            print(f"  {unused} is here, and not used: install a llama.cpp for it (docs/tutorial.md#without-a-compiler)")
        print(f"devices    {', '.join(devices())}")
        for gpu in gpus():
            print(f"  {_memory(gpu)}")
        path = find_target(config.target.path)
        check_file(path)
        if _check_servers(config.target.rpc, problems):
            _check_target(config, path)
        else:
            print(f"target     {path}: not loaded here, since a server of `target.rpc` is not to be had")
        _check_others(config)
    except CodespecError as error:
        _wrong(error, problems)
    except ImportError as error:
        _wrong(f"{error}: {INSTALLING}", problems)


def _check_others(config: Config) -> None:
    """The files of drafts, of the model of next edits and of the draft's adapter.

    Raises:
        CodespecError: one is not there, or is none.
    """
    from codespec.languages import USUAL, by_id
    from codespec.llama.model import check_file
    from codespec.models.registry import find_adapter, find_draft, find_edit_model

    drafts = {config.draft, *(own.draft for own in config.language.values() if own.draft)}
    files = [find_edit_model(config.edits.model), *(find_draft(each, by_id(USUAL)) for each in sorted(drafts))]
    if config.draft_lora.path:
        files.append(find_adapter(config.draft_lora.path))
    for path in filter(None, files):
        check_file(path)


def _check_servers(addresses: Sequence[str], problems: list[str]) -> bool:
    """Print what the RPC servers have; whether they can be used here now."""
    from codespec.llama import rpc

    print(f"rpc        {'in this build of llama.cpp' if rpc.supported() else 'not in this build of llama.cpp'}")
    complete = True
    for address in addresses:
        try:
            with rpc.Servers([address]) as servers:
                for device in servers.gpus:
                    print(f"  {_memory(device)}")
        except rpc.InUse as error:  # by the model process, as a rule
            complete = False
            print(f"  {error}")
        except CodespecError as error:
            complete = False
            _wrong(error, problems)
        if not rpc.is_loopback(address):
            print(f"  {address}: {rpc.UNSAFE}")
    return complete


def _memory(gpu: Gpu) -> str:
    return f"{gpu.name}: {gpu.free / 2**30:.1f} of {gpu.total / 2**30:.1f} GiB free"


def _check_target(config: Config, path: Path) -> None:
    from codespec.engine.local import LONGEST_AUTOMATIC_CONTEXT
    from codespec.llama.adapter import check
    from codespec.llama.context import Context
    from codespec.llama.devices import gpu_layers
    from codespec.llama.model import Model
    from codespec.llama.rpc import Servers
    from codespec.models.fim import fim_format
    from codespec.models.fitted import NONE, filling_adapter
    from codespec.models.registry import find_adapter

    settings = config.target
    longest = settings.context or LONGEST_AUTOMATIC_CONTEXT
    kv_type, flash_attention = settings.kv_type, settings.flash_attention
    with Servers(settings.rpc) as servers:
        layers = settings.set_gpu_layers
        placed = gpu_layers(layers, path, longest, kv_type, flash_attention, servers=servers.gpus)
        with Model(path, gpu_layers=int(placed.value), servers=servers) as model:
            print(f"target     {model.path}: {model.parameter_count:,} parameters, context {model.trained_context:,}")
            length = settings.context or min(model.trained_context, LONGEST_AUTOMATIC_CONTEXT)
            with Context(
                model,
                context_length=length,
                threads=settings.set_threads,
                kv_type=kv_type,
                flash_attention=flash_attention,
            ) as context:
                for name, choice in {"gpu_layers": placed, **context.choices}.items():
                    print(f"  {name} = {choice.value}: {choice.why or 'as the settings say'}")
                print(f"  {NOT_EXACT}")
            fills_in = fim_format(model) is not None
    if config.target_lora.path not in ("", NONE):
        adapter = find_adapter(config.target_lora.path)
        check(adapter, path)
        print(f"  target_lora = {adapter}, scale {config.target_lora.scale:g}: it fits the target")
    elif not config.target_lora.path and not fills_in and (own := filling_adapter(path)) is not None:
        print(f"  target_lora = {own}: it teaches the target to fill in the middle; {NONE!r} leaves it out")
