"""Where the extension finds the server: what is set counts more than what is on the PATH."""

from __future__ import annotations

import os
import stat

from tests.editors.common import PYTHON, REAL


def test_on_the_path_and_by_a_setting(window, tmp_path):
    program = tmp_path / "codespec"
    program.write_text(f'#!/bin/sh\nexec "{PYTHON}" -m codespec "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"])
    editor = window(f"path {tmp_path}", {}, path=path)
    editor.wait_until_ready()
    assert f"starting {program} serve, from the PATH" in editor.server.extension_log

    editor.configure({"codespec.python": PYTHON})
    told = f"starting {PYTHON} -m codespec serve, from the setting codespec.python"
    editor.wait(lambda: told in editor.server.extension_log, "the setting counts")
    editor.wait_until_ready()

    editor.configure({"codespec.python": PYTHON, "codespec.command": [*REAL, "--in-process"]})
    told = f"starting {' '.join(REAL)} --in-process, from the setting codespec.command"
    editor.wait(lambda: told in editor.server.extension_log, "the setting of the whole command counts more")
    editor.wait_until_ready()
