"""From settings to a completer whose models are loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from codespec.completion.completer import Completer
from codespec.completion.ending.token_prefixes import prepare
from codespec.completion.remote_completer import RemoteCompleter
from codespec.config import Config
from codespec.config_sections import RemoteConfig
from codespec.draft.storage.profiles import Profiles, default_folder
from codespec.engine.engine import Engine
from codespec.engine.local import LocalEngine
from codespec.engine.prompt_cache import MIB, PromptCacheSettings
from codespec.extras import remedy
from codespec.models.index import look_through
from codespec.models.registry import find_edit_model, find_model, find_target
from codespec.paths import kv_folder
from codespec.protocols import CodespecError, Sampling
from codespec.remote.errors import Refused


def load_completer(
    config: Config,
    progress: Callable[[str, int], None] | None = None,
    *,
    exact: bool = False,
    sampling: Sampling | None = None,
    patient: bool = True,
) -> Completer | RemoteCompleter:
    """Load the target of the settings, or connect to the engine that it runs on; takes seconds for a large one.

    Args:
        progress: called with a message and percent.
        patient: see ``Completer``.

    Raises:
        CodespecError: the model cannot be loaded; names the file and the remedy.
    """

    def load(config: Config) -> Completer:
        return Completer(load_engine(config, progress, exact=exact), config, sampling, patient)

    return completer_of(config, load)


def completer_of(config: Config, load: Callable[[Config], Completer]) -> Completer | RemoteCompleter:
    """A completer of these settings: one, or one elsewhere and one on this machine, each made by ``load``.

    Raises:
        CodespecError: as ``load_completer``.
    """
    if not config.remote.kind:
        return load(config)
    here = replace(config, remote=RemoteConfig())
    return RemoteCompleter(lambda: load(config), (lambda: load(here)) if config.remote.fallback == "local" else None)


def load_engine(config: Config, progress: Callable[[str, int], None] | None = None, *, exact: bool = False) -> Engine:
    """Load the target of the settings, or connect to its engine. Several completers may use it, one at a time.

    Args:
        progress: called with a message and percent.

    Raises:
        CodespecError: the model cannot be loaded; names the file and the remedy.
        RemoteError: the engine elsewhere is away or refuses.
    """
    if config.remote.kind:
        return _connect(config, exact)
    target = find_target(config.target.path)
    told = -1

    def report(fraction: float) -> bool:
        nonlocal told
        percent = int(fraction * 100)
        if progress is not None and percent > told:
            progress(f"loading {Path(target).name}", percent)
            told = percent
        return True

    try:
        engine = LocalEngine(
            target,
            context_length=config.target.context,
            threads=config.target.set_threads,
            gpu_layers=config.target.set_gpu_layers,
            draft_length=config.draft_length,
            drafts_bytes=config.draft_memory_mib * MIB,
            exact=exact,
            kv_type=config.target.kv_type,
            flash_attention=config.target.flash_attention,
            rpc=config.target.rpc,
            progress=report,
            profiles=Profiles(default_folder()),
            prompt_cache=PromptCacheSettings(
                memory=config.cache.memory_mib * MIB,
                saved=config.cache.saved_mib * MIB,
                folder=kv_folder(),
            ),
        )
    except ImportError as error:
        raise CodespecError(f"llama-cpp-python does not load ({error}); reinstall it, see `codespec doctor`") from error
    _ = engine.vocabulary.texts  # all at once is faster than one by one
    prepare(engine.vocabulary)  # while nobody waits for a completion
    look_through()
    return engine


def load_edit_engine(config: Config) -> LocalEngine:
    """Load the model of next edits of the settings, always on this machine; may run in a thread of its own.

    Raises:
        CodespecError: the model cannot be loaded; names the file and the remedy.
    """
    try:
        return LocalEngine(
            find_edit_model(config.edits.model),
            threads=config.target.set_threads,
            gpu_layers=config.target.set_gpu_layers,
            profiles=Profiles(default_folder()),
            prompt_cache=PromptCacheSettings(memory=0),
        )
    except ImportError as error:
        raise CodespecError(f"llama-cpp-python does not load ({error}); reinstall it, see `codespec doctor`") from error


def _connect(config: Config, exact: bool) -> Engine:
    if exact:
        raise CodespecError("exact decoding works on this machine only; leave `remote.kind` empty")
    try:
        from codespec.remote.load import connect
    except ImportError as error:
        raise Refused(f"engines elsewhere need more packages ({error}): {remedy('remote')}") from error
    remote = config.remote
    return connect(
        remote.kind,
        remote.url,
        model=remote.model,
        vocabulary=find_model(remote.vocabulary) if remote.vocabulary else None,
        mode=remote.mode,
        context_length=remote.context,
        key_env=remote.key_env,
        certificate=remote.certificate,
        silence_s=remote.silence_s,
        draft_length=config.draft_length,
        drafts_bytes=config.draft_memory_mib * MIB,
        profiles=Profiles(default_folder()),
    )
