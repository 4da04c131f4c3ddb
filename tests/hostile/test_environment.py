"""Environments as containers, services and careless administrators have them."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.config import Config, load, user_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no users and modes of this kind")

COMPLETE = """
import sys
sys.path[:] = {path!r}
from codespec.cli.main import main
raise SystemExit(main(["complete", "a.py:1", "--max-tokens", "2"]))
"""


def test_without_a_home_and_a_name(tmp_path):
    """A user whom no list of users knows gets completions, and no folder is made in the current one."""
    (tmp_path / "a.py").write_text("import os\n")
    (tmp_path / "tmp").mkdir()
    places = {"TMPDIR": str(tmp_path / "tmp"), "PATH": os.environ["PATH"]}
    unknown = "import pwd; pwd.getpwuid = lambda number: {}[number]\n"  # as pwd itself does, with a KeyError
    code = unknown + COMPLETE.format(path=sys.path)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=places, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.py", "tmp"]
    [folder] = (tmp_path / "tmp").glob("codespec-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_sockets_without_a_session_of_systemd(tmp_path):
    """As in containers and over ssh: nothing is said, and the folder is the user's own from the top."""
    if Path(f"/run/user/{os.getuid()}").is_dir():
        pytest.skip("there is such a session")
    code = f"import sys; sys.path[:] = {sys.path!r}; from codespec.paths import runtime_folder; print(runtime_folder())"
    places = {"TMPDIR": str(tmp_path), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=places, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (str(tmp_path / f"codespec-{os.getuid()}"), "")


def test_whatever_the_umask_is(tmp_path):
    """Everything that is written is for its owner alone."""
    (tmp_path / "a.py").write_text("import os\n")
    code = "import os; os.umask(0)\n" + COMPLETE.format(path=sys.path)
    environment = {key: os.environ[key] for key in ("PATH",)} | {"HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir(mode=0o700)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = list((tmp_path / "home").rglob("*"))
    assert made
    for each in made:
        assert not stat.S_IMODE(each.stat().st_mode) & 0o077, each


def test_settings_that_everybody_may_write_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = user_file()
    file.parent.mkdir(mode=0o700)
    file.write_text("max_tokens = 5\n")
    assert load()[0].max_tokens == 5
    for place, mode in ((file, 0o666), (file.parent, 0o777)):
        before = stat.S_IMODE(place.stat().st_mode)
        place.chmod(mode)
        config, [message] = load()
        assert config == Config()
        assert message == f"{file}: ignored, since everybody may write to {place}; chmod o-w {place}"
        place.chmod(before)


def test_the_settings_that_a_command_writes_are_private(tmp_path, monkeypatch):
    from codespec.models.choose import choose

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    before = os.umask(0)
    try:
        choose(user_file(), "draft", "none", "")
    finally:
        os.umask(before)
    for each in (user_file(), Path(user_file()).parent):
        assert not stat.S_IMODE(each.stat().st_mode) & 0o077
