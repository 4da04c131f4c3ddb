"""``codespec learnt``: its command, which imports what is heavy when it runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from codespec.errors import CodespecError
from codespec.exit_codes import DONE


def run_learnt_clear(options: argparse.Namespace) -> int:
    """Delete the n-grams and the saved KV caches of a workspace."""
    from codespec.draft.storage.token_log import clear
    from codespec.engine.prompt_store import delete_kept
    from codespec.paths import kv_folder, name_of

    folder = options.folder or Path()
    clear(folder)
    try:
        delete_kept(kv_folder(), name_of(str(folder)))
    except OSError as error:
        raise CodespecError(f"what was read in {folder} cannot be deleted: {error}") from error
    print(f"{folder.resolve()}: what was learnt there is forgotten")
    return DONE
