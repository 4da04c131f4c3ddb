"""``codespec setup``: what is asked, fetched, written and said, on a terminal and without one."""

import io
import shlex
import shutil
from pathlib import Path

import pytest

from codespec.cli.main import main
from codespec.cli.options import build_parser
from codespec.cli.setup import EDITORS, STEPS
from codespec.config import load, user_file
from codespec.models.catalogue import CATALOGUE, PACKAGED
from codespec.models.registry import EMBEDDED, models_folder
from codespec.models.suggest import best, choices, fits, this_machine
from tests.real_model import as_installed
from tests.stand_in_hub import stand_in_hub

ROOT = Path(__file__).parents[2]
SMALL, LARGE = "qwen2.5-coder-0.5b-q8_0", "qwen2.5-coder-7b-q4_k_m"


class Keyboard(io.StringIO):
    """A terminal on which these lines are typed; the one that is None is Ctrl+C."""

    def __init__(self, lines: list[str | None]) -> None:
        super().__init__()
        self.lines = lines

    def isatty(self) -> bool:
        return True

    def readline(self, *_: object) -> str:  # type: ignore[override]
        line = self.lines.pop(0) if self.lines else ""
        if line is None:
            raise KeyboardInterrupt
        return line


@pytest.fixture(autouse=True)
def hub(tmp_path, monkeypatch):
    """A hub with small files under the names of the catalogue, for somebody whose folders are empty."""
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CODESPEC_MACHINE_SPEED", "60,1000")
    monkeypatch.setattr("codespec.paths.platformdirs.user_config_dir", lambda name: str(tmp_path / "config"))
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")
    with stand_in_hub() as hub:
        for model in CATALOGUE:
            hub.files[model.repository] = {model.file: (EMBEDDED / "draft-python.gguf").read_bytes()}
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs the command on a terminal where these lines are typed, or without one; its code, output and errors."""

    def run(*arguments: str, typed: list[str | None] | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO() if typed is None else Keyboard(typed))
        code = main(["setup", *arguments])
        assert not typed, "fewer questions than answers"
        return code, *capsys.readouterr()

    return run


def suggested() -> str:
    found = best(fits(this_machine(), (*PACKAGED, *CATALOGUE)))
    assert found is not None
    return found.model.name


def fetched() -> set[str]:
    return {path.stem for path in models_folder().glob("*.gguf")}


def test_three_questions_and_it_is_set_up(run):
    code, out, err = run(typed=["neovim\n", "\n", "\n"])
    assert (code, out.count("(Enter)")) == (0, 3)
    assert (fetched(), load()[0].target.path) == ({suggested()}, suggested())
    assert " of 1.7 MB" in err
    assert all(f"\n  {step}\n" in out for step in STEPS["neovim"])
    assert not list(Path.cwd().iterdir())


def test_what_is_offered(run):
    _, out, _ = run("--editor", "none", typed=["embedded\n"])
    found = choices(fits(this_machine(), (*PACKAGED, *CATALOGUE)))
    assert [line.split()[1] for line in out.split("Which model?\n")[1].splitlines()[: len(found) + 1]] == [
        *(f"{each.model.name}:" for each in found),
        "embedded:",
    ]
    assert "smollm2-135m: 98 MB, Apache-2.0, a completion in about 0." in out
    assert load()[0].target.path == "embedded"
    assert not fetched()


def test_an_answer_is_a_number_a_word_or_its_beginning(run):
    code, out, _ = run("--model", "embedded", typed=["9\n", "n\n", "nothing\n", "vs\n"])
    assert (code, out.count(f"1 to {len(EDITORS)}\n")) == (0, 3)
    assert STEPS["vscode"][1] in out
    assert STEPS["neovim"][1] in run("--model", "embedded", typed=["2\n"])[1]


def test_later_is_said_how(run):
    code, out, _ = run("--editor", "other", "--model", SMALL, typed=["n\n"])
    assert (code, fetched(), user_file().exists()) == (0, set(), False)
    [line] = [line for line in out.splitlines() if "later with: codespec setup " in line]
    assert run(*shlex.split(line.partition("codespec setup")[2]))[0] == 0
    assert (fetched(), load()[0].target.path) == ({SMALL}, SMALL)


def test_without_fetching_only_what_is_here_is_used(run):
    assert run("--yes", "--model", SMALL, "--no-fetch")[0] == 0
    assert not user_file().exists()
    models_folder().mkdir(parents=True)
    shutil.copy(EMBEDDED / "target.gguf", models_folder() / f"{SMALL}.gguf")
    assert run("--editor", "none", "--model", SMALL, "--no-fetch")[0] == 0
    assert load()[0].target.path == SMALL


@pytest.mark.parametrize("arguments", [[], ["--editor", "none"], ["--editor", "none", "--model", SMALL]])
def test_without_a_terminal_options_have_to_answer(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert all(option in err for option in ("--editor", "--model", "--yes", "--no-fetch"))
    assert not user_file().exists()


def test_yes_takes_what_is_suggested(run, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name in ("nvim", "codespec") else None)
    code, out, _ = run("--yes")
    assert (code, load()[0].target.path) == (0, suggested())
    assert STEPS["neovim"][1] in out
    assert "PATH" not in out


def test_a_model_in_a_package(run, smollm2, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(as_installed(tmp_path / "site-packages", smollm2)["PYTHONPATH"].split(":")[-1])
    assert run("--editor", "none", "--model", "smollm2-135m", "--yes")[0] == 0
    assert (fetched(), load()[0].target.path) == ({"smollm2-135m"}, "smollm2-135m")


def test_twice_is_as_once_and_needs_no_hub(run, hub, monkeypatch):
    arguments = ["--editor", "other", "--model", SMALL, "--yes"]
    first, settings = run(*arguments), user_file().read_bytes()
    asked = len(hub.ranges)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    again = run(*arguments)
    assert (again[0], len(hub.ranges), user_file().read_bytes()) == (0, asked, settings)
    assert first[1].endswith(again[1])


def test_a_draft_comes_with_its_model_and_goes_with_it(run):
    assert run("--editor", "none", "--model", LARGE, "--yes")[0] == 0
    assert fetched() == {LARGE, SMALL}
    assert (load()[0].target.path, load()[0].draft) == (LARGE, SMALL)
    assert run("--editor", "none", "--model", "embedded")[0] == 0
    assert (load()[0].target.path, load()[0].draft) == ("embedded", "auto")


def test_a_draft_of_the_users_own_stays(run):
    user_file().parent.mkdir()
    user_file().write_text('draft = "none"  # mine\n', "utf-8")
    assert run("--editor", "none", "--model", "embedded")[0] == 0
    assert load()[0].draft == "none"


@pytest.fixture
def before() -> bytes:
    user_file().parent.mkdir()
    user_file().write_text("seed = 7  # mine\n", "utf-8")
    return user_file().read_bytes()


def test_a_download_that_fails_says_what_to_do_and_changes_nothing(run, hub, before):
    hub.gated |= set(hub.files)
    code, out, err = run("--editor", "vscode", "--model", LARGE, "--yes")
    assert (code, user_file().read_bytes()) == (2, before)
    assert "wants its licence accepted: do that at https://" in err
    assert "Next" not in out


@pytest.mark.parametrize("typed", [[None], ["1\n", None], ["1\n", "1\n", ""]])
def test_ctrl_c_and_ctrl_d_at_a_question(run, before, typed):
    code, _, err = run(typed=typed)
    assert (code, user_file().read_bytes()) == (130, before)
    assert "settings are as they were" in err


def test_ctrl_c_in_a_download_keeps_what_came(run, hub, before, monkeypatch):
    def interrupt(what: str, done: int, size: int) -> None:
        if done > 500_000:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("codespec.cli.models._transfer", lambda: interrupt)
        patched.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)  # else all comes at once
        code, _, err = run("--editor", "none", "--model", SMALL, "--yes")
    assert (code, user_file().read_bytes()) == (130, before)
    assert "what came from a hub is kept" in err
    [part] = (models_folder() / ".partial").glob("*.part")
    come = part.stat().st_size
    assert come > 0
    assert run("--editor", "none", "--model", SMALL, "--yes")[0] == 0
    assert hub.ranges[-1] == f"bytes={come}-"
    assert user_file().read_bytes().startswith(before)


def test_the_steps_are_those_of_the_tutorial_and_name_a_folder(run, monkeypatch, tmp_path):
    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    for editor, steps in STEPS.items():
        assert "\n".join(steps) in tutorial
        assert f"Next, in {ROOT}:" in run("--editor", editor, "--model", "embedded")[1]
    monkeypatch.setattr("codespec.cli.setup.__file__", str(tmp_path / "lib" / "codespec" / "cli" / "setup.py"))
    assert "Next, in a clone of the repository" in run("--editor", "vscode", "--model", "embedded")[1]
    monkeypatch.chdir(ROOT)
    assert f"Next, in {ROOT}:" in run("--editor", "vscode", "--model", "embedded")[1]
    assert "docs/editors.md" in run("--editor", "other", "--model", "embedded")[1]
    assert "Next: codespec complete" in run("--editor", "none", "--model", "embedded")[1]


def test_where_codespec_is_not_on_the_path(run, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "-m codespec`" in run("--editor", "other", "--model", "embedded")[1]


def test_it_stands_first_in_the_help():
    commands = build_parser().format_help().partition("COMMAND\n")[2]
    assert commands.split()[0] == "setup"
