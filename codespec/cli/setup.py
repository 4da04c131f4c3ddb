"""``codespec setup``: a model and an editor in three questions."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codespec.cli import show
from codespec.cli.models import fetch, run_models_use
from codespec.errors import CodespecError
from codespec.exit_codes import DONE

if TYPE_CHECKING:
    from codespec.models.suggest import Fit

EDITORS = {"vscode": "VS Code", "neovim": "Neovim", "other": "another one that speaks LSP", "none": "none for now"}
STEPS = {
    "vscode": ("cd editors/vscode && npm ci && npm run package", "code --install-extension codespec-*.vsix"),
    "neovim": (
        "mkdir -p ~/.config/nvim/pack/codespec/start",
        'ln -s "$PWD/editors/neovim" ~/.config/nvim/pack/codespec/start/codespec',
        "echo \"lua require('codespec').setup()\" >> ~/.config/nvim/init.vim",
    ),
}
"""The commands of ``docs/tutorial.md``, to be run in a clone of the repository."""

NO_TERMINAL = (
    "no terminal to ask on: answer with --editor vscode|neovim|other|none, --model NAME|embedded, and --yes (fetch it) "
    "or --no-fetch; --yes alone takes what is suggested"
)


def run_setup(options: argparse.Namespace) -> int:
    """``codespec setup``."""
    try:
        editor = options.editor or _ask(options, "Which editor?", EDITORS, _installed_editor())
        name, draft = _model(options, editor)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        show.error("stopped; settings are as they were, and what came from a hub is kept: run `codespec setup` again")
        raise
    if name:
        _use(name, draft)
    _tell_next(editor)
    return DONE


def _model(options: argparse.Namespace, editor: str) -> tuple[str, str]:
    """The names of a model and its draft that are here now; both empty where it is to be fetched later."""
    from codespec.models.catalogue import amount, known_model

    name = options.model or _ask_for_model(options)
    entry = known_model(name)
    wanted = [name, *([entry.draft] if entry and entry.draft else [])]
    missing = [each for each in wanted if not _is_here(each)]
    if missing:
        sizes = [known.size for each in missing if (known := known_model(each))]
        what = f"{' and '.join(missing)}{f' ({amount(sum(sizes))})' if sizes else ''}"
        if options.no_fetch or _ask(options, f"Fetch {what} now?", {"yes": "yes", "no": "no, later"}, "yes") == "no":
            print(f"Fetch {what} later with: codespec setup --editor {editor} --model {name} --yes")
            return "", ""
    found = [fetch(each).stem if each in missing else each for each in wanted]
    return found[0], "".join(found[1:])


def _ask_for_model(options: argparse.Namespace) -> str:
    _may_ask(options)
    from codespec.models.catalogue import CATALOGUE, PACKAGED
    from codespec.models.registry import EMBEDDED_NAME
    from codespec.models.suggest import best, choices, fits, this_machine

    print("This machine is measured…")
    found = fits(this_machine(), (*PACKAGED, *CATALOGUE))
    models = {each.model.name: _about(each) for each in choices(found)}
    usual = best(found) or found[0]
    models[EMBEDDED_NAME] = "comes with codespec: to try it out"
    return _ask(options, "Which model?", {name: f"{name}: {about}" for name, about in models.items()}, usual.model.name)


def _about(fit: Fit) -> str:
    from codespec.models.catalogue import amount

    speed = "on the GPU" if fit.on_gpu else f"a completion in about {max(0.1, fit.later):.1f} s"
    return f"{amount(fit.download)}, {fit.model.licence}, {speed}{'' if fit.good else ': too slow to type along with'}"


def _is_here(name: str) -> bool:
    from codespec.models.registry import file_or_model

    try:
        return file_or_model(name).is_file()
    except CodespecError:
        return False


def _use(name: str, draft: str) -> None:
    """Write the user's settings. A draft that belonged to the model before is not kept."""
    from codespec.config import load
    from codespec.models.catalogue import CATALOGUE

    if not draft and load()[0].draft in {each.draft for each in CATALOGUE if each.draft}:
        draft = "auto"
    if draft:
        run_models_use(argparse.Namespace(model=draft, role="draft", language=None))
    run_models_use(argparse.Namespace(model=name, role="target", language=None))


def _installed_editor() -> str:
    return "vscode" if shutil.which("code") else "neovim" if shutil.which("nvim") else "other"


def _tell_next(editor: str) -> None:
    if editor in STEPS:
        places = (Path(__file__).parents[2], Path.cwd())
        folder = next((each for each in places if (each / "editors" / editor).is_dir()), None)
        print(f"\nNext, in {folder or 'a clone of the repository that codespec was installed from'}:")
        for step in STEPS[editor]:
            print(f"  {step}")
        print("Then open a file and type: Tab takes what is shown.")
    elif editor == "other":
        print("\nNext: let your editor start `codespec serve`, as docs/editors.md says for each.")
    else:
        print("\nNext: codespec complete FILE:LINE --show")
    if editor != "none" and not shutil.which("codespec"):
        print(f"`codespec` is not on the PATH: the editor's settings have to name `{sys.executable} -m codespec`.")


def _may_ask(options: argparse.Namespace) -> None:
    if not options.yes and not sys.stdin.isatty():
        raise CodespecError(NO_TERMINAL)


def _ask(options: argparse.Namespace, question: str, answers: Mapping[str, str], usual: str) -> str:
    """One of the keys of ``answers``, which a number, or what it alone begins with, stands for.

    Raises:
        CodespecError: there is nobody to ask.
        KeyboardInterrupt: nothing more will be said.
    """
    if options.yes:
        return usual
    _may_ask(options)
    print(question)
    numbered = {str(number): key for number, key in enumerate(answers, 1)}
    for number, key in numbered.items():
        print(f"  {number}  {answers[key]}{' (Enter)' if key == usual else ''}")
    while True:
        try:
            said = input("> ").strip().lower() or usual
        except EOFError:
            raise KeyboardInterrupt from None
        meant = [said] if said in answers else [key for key in answers if key.startswith(said)]
        if said in numbered or len(meant) == 1:
            return numbered.get(said) or meant[0]
        print(f"1 to {len(answers)}")
