"""From settings to a completer whose models are loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codespec.completion.completer import Completer
from codespec.completion.ending.token_prefixes import prepare
from codespec.config import Config
from codespec.draft.storage.profiles import Profiles, default_folder
from codespec.engine.local import LocalEngine
from codespec.engine.prompt_cache import MIB, PromptCacheSettings
from codespec.models.index import look_through
from codespec.models.registry import find_target
from codespec.paths import kv_folder
from codespec.protocols import CodespecError, Sampling


def load_completer(
    config: Config,
    progress: Callable[[str, int], None] | None = None,
    *,
    exact: bool = False,
    sampling: Sampling | None = None,
    patient: bool = True,
) -> Completer:
    """Load the target of the settings; takes seconds for a large one.

    Args:
        progress: called with a message and percent.
        patient: see ``Completer``.

    Raises:
        CodespecError: the model cannot be loaded; names the file and the remedy.
    """
    if exact and sampling is not None and sampling.verify == "rejection" and sampling.temperature > 0:
        raise CodespecError("exact decoding gives one text with any draft, rejection sampling does not; choose one")
    return Completer(load_engine(config, progress, exact=exact), config, sampling, patient)


def load_engine(
    config: Config, progress: Callable[[str, int], None] | None = None, *, exact: bool = False
) -> LocalEngine:
    """Load the target of the settings. Several completers may use it, one at a time.

    Args:
        progress: called with a message and percent.

    Raises:
        CodespecError: the model cannot be loaded; names the file and the remedy.
    """
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
                shift=config.cache.shift,
            ),
        )
    except ImportError as error:
        raise CodespecError(f"llama-cpp-python does not load ({error}); reinstall it, see `codespec doctor`") from error
    _ = engine.vocabulary.texts  # all at once is faster than one by one
    prepare(engine.vocabulary)  # while nobody waits for a completion
    look_through()
    return engine
