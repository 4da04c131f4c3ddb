"""``codespec doctor``: the state of the installation, and problems with it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
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


def report() -> bool:
    """Print one line for each part; whether all is well."""
    print(f"codespec   {_version('codespec')}, Python {platform.python_version()}, {platform.platform()}")
    well = True
    for package in ("llama-cpp-python", "llguidance", "pygls", "lark", "numpy"):
        found = _version(package)
        well &= found != "missing"
        print(f"{package:18} {found}")
    config, messages = load()
    print(f"settings   {user_file()}{'' if user_file().exists() else ' (not there: defaults)'}")
    folder = models_folder()
    print(f"models     {folder} ({len(list(folder.glob('*.gguf')))} of your own; `codespec models list` names all)")
    judges = [f"{each.command[0]}{'' if each.installed else ' (missing)'}" for each in (GOFMT, RUSTFMT)]
    print(f"judges     {', '.join(judges)}: of completions in Go and Rust, beside the parser")
    for message in messages:
        well = False
        print(f"  {message}")
    _show_statistics()
    if config.remote.kind:
        well &= _check_remote(config)
    return _check_models(config) and well


def _show_statistics() -> None:
    from codespec.lsp.statistics import UsageStatistics

    counts = UsageStatistics().read().values()
    if counts:
        shown, accepted = (sum(each[name] for each in counts) for name in ("shown", "accepted"))
        print(f"statistics {shown:,} completions shown, {accepted:,} accepted (on this machine; never sent)")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _check_remote(config: Config) -> bool:
    """The engine elsewhere: whether it answers, what it is, and what is sent to it how."""
    from codespec.completion.load import load_engine

    try:
        engine = load_engine(config)
    except CodespecError as error:
        print(f"  {error}", file=sys.stderr)
        return False
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
    return True


def _check_models(config: Config) -> bool:
    try:
        from codespec.llama import probe
        from codespec.llama.devices import devices, gpus
        from codespec.llama.model import check_file
        from codespec.models.registry import find_target

        works = probe.extra_buffers_work()
        kernels = "fast matrix kernels work" if works else probe.REMEDY
        print(f"llama.cpp  {kernels}")
        print(f"devices    {', '.join(devices())}")
        for gpu in gpus():
            print(f"  {_memory(gpu)}")
        path = find_target(config.target.path)
        check_file(path)
        well, complete = _check_servers(config.target.rpc)
        if complete:
            _check_target(config, path)
        else:
            print(f"target     {path}: not loaded here, since a server of `target.rpc` is not to be had")
        _check_others(config)
    except (CodespecError, ImportError) as error:
        print(f"  {error}", file=sys.stderr)
        return False
    return works and well


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


def _check_servers(addresses: Sequence[str]) -> tuple[bool, bool]:
    """Print what the RPC servers have; whether nothing is wrong with them, and whether they can be used here now."""
    from codespec.llama import rpc

    print(f"rpc        {'in this build of llama.cpp' if rpc.supported() else 'not in this build of llama.cpp'}")
    well = complete = True
    for address in addresses:
        try:
            with rpc.Servers([address]) as servers:
                for device in servers.gpus:
                    print(f"  {_memory(device)}")
        except rpc.InUse as error:  # by the model process, as a rule
            complete = False
            print(f"  {error}")
        except CodespecError as error:
            well = complete = False
            print(f"  {error}", file=sys.stderr)
        if not rpc.is_loopback(address):
            print(f"  {address}: {rpc.UNSAFE}")
    return well, complete


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
