"""docs/settings.md and VS Code's package.json say of the settings what ``Config`` says."""

import json

import pytest

from tests.settings_texts import FILES, ROOT, SETTINGS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_said_of_the_settings_is_not_stale(path):
    text = path.read_text("utf-8")
    assert FILES[path](text) == text, "mended by `python -m tests.settings_texts`"


def test_vs_code_offers_every_setting():
    groups = json.loads((ROOT / "editors/vscode/package.json").read_text("utf-8"))["contributes"]["configuration"]
    offered = {key.removeprefix("codespec.") for group in groups for key in group["properties"]}
    keys = {key for key, setting in SETTINGS.items() if setting.default is not None} | {"language"}
    assert offered - keys == {"command", "python", "installFrom", "pipArguments", "statusBar", "showLatency"}
    assert {key for key in keys - offered if not key.startswith("remote.")} == {"gate"}
