"""``codespec doctor``: what runs here, and what is wrong with it."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from codespec.config import load, user_file
from codespec.models.registry import models_folder
from codespec.protocols import CodespecError


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
    for message in messages:
        well = False
        print(f"  {message}")
    _show_statistics()
    return _check_models(config.target.path) and well


def _show_statistics() -> None:
    from codespec.lsp.statistics import Statistics

    counts = Statistics(lambda uri: None).read().values()
    if counts:
        shown, accepted = (sum(each[name] for each in counts) for name in ("shown", "accepted"))
        print(f"statistics {shown:,} completions shown, {accepted:,} accepted (on this machine; never sent)")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _check_models(target: str) -> bool:
    try:
        from codespec.llama import probe
        from codespec.llama.model import Model
        from codespec.models.registry import find_target

        works = probe.extra_buffers_work()
        kernels = "fast matrix kernels work" if works else probe.REMEDY
        print(f"llama.cpp  {kernels}")
        with Model(find_target(target)) as model:
            print(f"target     {model.path}: {model.parameter_count:,} parameters, context {model.trained_context:,}")
    except (CodespecError, ImportError) as error:
        print(f"  {error}", file=sys.stderr)
        return False
    return works
