"""What children of the language server tell of their progress."""

from io import StringIO
from queue import SimpleQueue

import pytest

from codespec import child_progress
from codespec.train.progress_bar import ProgressBar


def test_what_is_told_is_heard(capsys):
    child_progress.tell("a.gguf", 1 / 3)
    assert child_progress.heard(capsys.readouterr().err.strip()) == ("a.gguf", 0.3333)


@pytest.mark.parametrize(
    "line", ["a.gguf 1.0 of 3.0 MB", '{"step": ', '{"step": "a"}', '{"step": "a", "share": []}', "[1]"]
)
def test_other_lines_are_no_progress(line):
    assert child_progress.heard(line) is None


def test_no_share_is_beyond_the_whole():
    assert child_progress.heard('{"step": "a", "share": 7}') == ("a", 1.0)


class Lines(StringIO):
    """What is written to it, in order; a test may wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: SimpleQueue[str] = SimpleQueue()

    def write(self, text: str) -> int:
        self.written.put(text)
        return len(text)


def test_a_training_shows_a_bar_that_moves(monkeypatch):
    monkeypatch.setattr("codespec.train.progress_bar.TICK_S", 0.1)
    monkeypatch.setattr("codespec.train.progress_bar.IN_A_FILE_S", 0.1)
    lines = Lines()
    monkeypatch.setattr("sys.stderr", lines)
    with ProgressBar("the draft learns", 10.0) as bar:
        bar.at(5.0)
        while "the draft learns:  50%" not in lines.written.get(timeout=60):
            pass
        while "the draft learns:  50%" in (said := lines.written.get(timeout=60)) or not said.strip():
            pass  # a step that takes long
    assert int(said.rpartition("%")[0].rpartition(" ")[2]) > 50
