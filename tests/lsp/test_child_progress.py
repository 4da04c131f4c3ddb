"""What children of the language server tell of their progress."""

import time

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


def test_a_training_tells_each_percent_once(monkeypatch, capsys):
    monkeypatch.setenv(child_progress.VARIABLE, "json")
    with ProgressBar(child_progress.READS, 200.0) as bar:
        for seconds in (1.0, 1.5, 2.0, 2.5, 500.0):
            bar.at(seconds)
    heard = [child_progress.heard(line) for line in capsys.readouterr().err.splitlines()]
    assert heard == [(child_progress.READS, share) for share in (0.0, 0.01, 1.0)]


def test_a_step_that_takes_long_moves_the_bar(monkeypatch, capsys):
    monkeypatch.setenv(child_progress.VARIABLE, "json")
    monkeypatch.setattr("codespec.train.progress_bar.TICK_S", 0.1)
    with ProgressBar(child_progress.LEARNS, 10.0) as bar:
        bar.at(5.0)
        time.sleep(0.5)
    shares = [found[1] for line in capsys.readouterr().err.splitlines() if (found := child_progress.heard(line))]
    assert shares[0] == 0.5
    assert shares[-1] >= 0.53


def test_without_such_a_parent_a_training_shows_a_bar(monkeypatch, capsys):
    monkeypatch.delenv(child_progress.VARIABLE, raising=False)
    with ProgressBar(child_progress.LEARNS, 10.0) as bar:
        bar.at(5.0)
    said = capsys.readouterr().err
    assert "the draft learns" in said
    assert child_progress.heard(said.strip()) is None
