"""A model on this machine answers while the engine elsewhere is away."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from codespec.completion.completer import Completer
from codespec.completion.load import load_completer
from codespec.completion.remote_completer import RemoteCompleter
from codespec.completion.request import Request
from codespec.config import Config
from codespec.engine.local import LocalEngine
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Limits
from codespec.remote.errors import Away, Refused

TEXT = "def area(width, height):\n    return width * height\n\n\nresult = "
REQUEST = Request(TEXT, len(TEXT), "python")


class Elsewhere(LocalEngine):
    """An engine that is away while ``away`` says why."""

    away = ""

    def generate(self, *arguments, **options):
        if self.away:
            raise Away(self.away)
        return super().generate(*arguments, **options)

    def prefill(self, *arguments, **options):
        if self.away:
            raise Away(self.away)
        return super().prefill(*arguments, **options)

    @property
    def name(self) -> str:
        return "elsewhere"


def elsewhere() -> Completer:
    return Completer(Elsewhere(EMBEDDED_TARGET), Config(learn=False, time_budget_ms=0))


def here() -> Completer:
    completer = load_completer(Config(learn=False, time_budget_ms=0))
    assert isinstance(completer, Completer)
    return completer


@pytest.fixture
def completer() -> Iterator[RemoteCompleter]:
    found = RemoteCompleter(elsewhere, here)
    yield found
    found.close()


def test_the_engine_elsewhere_answers_as_long_as_it_can(completer: RemoteCompleter, caplog) -> None:
    caplog.set_level(logging.WARNING)
    elsewhere = completer.engine
    assert isinstance(elsewhere, Elsewhere)
    [first] = completer.complete(REQUEST)
    assert first.report["target"] == "elsewhere"
    elsewhere.away = "the cable is out"
    for _ in range(3):
        completer.prefill(REQUEST)
        [found] = completer.complete(REQUEST)
        assert (found.text, found.report["target"]) == (first.text, "target")
    assert completer.status()["away"] == "the cable is out"
    assert [each.getMessage() for each in caplog.records] == [
        "the cable is out; until it answers again, the model on this machine does"
    ]
    elsewhere.away = ""
    [found] = completer.complete(REQUEST)
    assert (found.text, found.report["target"]) == (first.text, "elsewhere")
    assert "away" not in completer.status()


def test_it_need_not_be_there_at_the_start() -> None:
    reasons = ["it is not there yet", "nor now"]

    def connect() -> Completer:
        if reasons:
            raise Away(reasons.pop(0))
        return elsewhere()

    completer = RemoteCompleter(connect, here)
    try:
        assert [each.report["target"] for each in completer.complete(REQUEST)] == ["target"]
        assert [each.report["target"] for each in completer.complete(REQUEST)] == ["elsewhere"]
    finally:
        completer.close()


def test_settings_that_do_not_fit_say_so_and_hold_nothing_up(caplog) -> None:
    def connect() -> Completer:
        raise Refused("`remote.url` is no address")

    caplog.set_level(logging.WARNING)
    completer = RemoteCompleter(connect, here)
    try:
        assert [each.report["target"] for each in completer.complete(REQUEST)] == ["target"]
        assert "`remote.url` is no address" in caplog.text
    finally:
        completer.close()


SECRET = "password = 'dedehulfel'\n\n\nresult = "


@pytest.mark.parametrize("text", [SECRET, "password = 'dedehulfel", "a = 1\npassword = 'dedehul\n\n"])
def test_what_must_not_leave_the_machine_is_completed_here(text: str) -> None:
    for load, wanted in ((here, ["target"]), (None, [])):
        completer = RemoteCompleter(elsewhere, load)
        try:
            request = Request(text, len(text), "python", "settings.py")
            completer.prefill(request)
            assert [each.report["target"] for each in completer.complete(request)] == wanted
            assert completer.engine.statistics.tokens or not wanted
            assert [each.report["target"] for each in completer.complete(REQUEST)] == ["elsewhere"]
        finally:
            completer.close()


def test_without_a_model_on_this_machine_the_error_is_told() -> None:
    reasons = ["it is not there yet", "nor now"]

    def connect() -> Completer:
        if reasons:
            raise Away(reasons.pop(0))
        return elsewhere()

    completer = RemoteCompleter(connect, None)
    try:
        assert completer.problems == ["it is not there yet"]
        assert completer.status() == {"away": "it is not there yet"}
        with pytest.raises(Away, match="nor now"):
            completer.complete(REQUEST)
        assert [each.report["target"] for each in completer.complete(REQUEST)] == ["elsewhere"]
    finally:
        completer.close()


def test_work_with_the_tokens_of_one_engine_begins_anew_with_the_other(completer: RemoteCompleter) -> None:
    asked = []

    def work(each: Completer) -> list[str]:
        asked.append(each.engine.name)
        tokens = each.engine.vocabulary.tokenize(TEXT)
        return [found.text for found in each.generate(tokens, limits=Limits(max_tokens=4))]

    expected = completer.answer(work)
    assert isinstance(completer.engine, Elsewhere)
    completer.engine.away = "gone"
    assert completer.answer(work) == expected
    assert asked == ["elsewhere", "elsewhere", "target"]


def test_idle_time_loads_the_model_on_this_machine(completer: RemoteCompleter) -> None:
    assert not completer.idle(lambda: False)
    assert isinstance(completer.engine, Elsewhere)
    completer.engine.away = "gone"
    assert [each.report["target"] for each in completer.complete(REQUEST)] == ["target"]
