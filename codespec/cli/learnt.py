"""``codespec learnt``: its commands, which import what is heavy when they run."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from codespec.errors import CodespecError
from codespec.exit_codes import DONE


def run_learnt_list(options: argparse.Namespace) -> int:
    """``codespec learnt list``."""
    from codespec.draft.storage.accepted_texts import accepted_folder, languages_kept, load

    if options.language:
        for record in load([options.language]):
            place = f"{_when(record.time)} {record.path}"
            print(json.dumps(asdict(record)) if options.json else f"{place}\n{record.text}\n")
        return DONE
    kept = languages_kept()
    for language, path in kept.items():
        records = load([language])
        first, last, size = records[0].time, records[-1].time, path.stat().st_size
        if options.json:
            found = {"language": language, "completions": len(records), "first": first, "last": last}
            print(json.dumps({**found, "bytes": size, "file": str(path)}))
        else:
            count = f"{language:12} {len(records):6,} accepted completions"
            print(f"{count}, {_when(first)} to {_when(last)}, {size / 1e6:.1f} MB: {path}")
    if not kept and not options.json:
        print(f"no accepted completions are kept in {accepted_folder()} (`keep_accepted` in the settings)")
    return DONE


def run_learnt_clear(options: argparse.Namespace) -> int:
    """``codespec learnt clear``."""
    from codespec.draft.storage.accepted_texts import forget
    from codespec.draft.storage.token_log import clear
    from codespec.engine.prompt_store import delete_kept
    from codespec.paths import kv_folder, name_of

    if options.accepted:
        forget(options.folder)
        where = f" in {options.folder.resolve()}" if options.folder else ""
        print(f"what was accepted{where} is forgotten")
        return DONE
    folder = options.folder or Path()
    clear(folder)
    forget(folder)
    try:
        delete_kept(kv_folder(), name_of(str(folder)))
    except OSError as error:
        raise CodespecError(f"what was read in {folder} cannot be deleted: {error}") from error
    print(f"{folder.resolve()}: what was learnt there is forgotten")
    return DONE


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat(" ", "minutes")
