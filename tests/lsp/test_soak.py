"""A short session of the kind that ``python -m tests.soak`` runs for an hour, and how that judges."""

from __future__ import annotations

import sys

import pytest

from .soak import Report, growth, soak
from .test_real_server import complete_checkout  # noqa: F401  # a fixture

SECONDS = 25.0
GENEROUS = 1.0


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_session_loses_no_request_and_logs_no_error():
    report = await soak(SECONDS, seed=3, edits_per_s=15, documents=20)
    assert report.problems(GENEROUS) == [], report.text()
    assert report.requests > SECONDS
    assert report.answers["text"] > 0
    assert report.answers["cancelled"] > 0
    assert report.status["state"] == "ready"
    if sys.platform == "linux":
        assert len(report.memory) > 2
        assert report.memory[-1][1] > 50
        assert 0 < max(report.kept) < 64


def test_a_steady_growth_is_found_behind_a_warm_up_and_peaks():
    samples = [(float(t), 500.0 + min(t, 100) * 2 + (300 if t % 17 == 0 else 0)) for t in range(1000)]
    assert growth(samples, 100) == pytest.approx(0, abs=1e-3)
    assert growth(samples, 0) is not None
    growing = [(t, size + 0.05 * t) for t, size in samples]
    assert growth(growing, 100) == pytest.approx(45 / 705, rel=0.1)
    assert growth(samples[:50], 45) is None


def test_a_report_names_what_is_wrong():
    report = Report(seconds=1000, requests=3)
    report.answers.update({"text": 1, "lost": 1, "error": 1})
    report.memory = [(float(t), 100.0 + t / 10) for t in range(1000)]
    report.kept = [5.0] * 1000
    report.complaints = ["logged: ERROR codespec: x"]
    report.errors = ["soak 3: -32603"]
    problems = report.problems()
    assert problems[:4] == ["1 requests: lost", "1 requests: error", "soak 3: -32603", "logged: ERROR codespec: x"]
    assert problems[4].startswith("memory grew by")
    assert len(problems) == 5
    assert report.problems(most_growth=5.0) == problems[:4]
    report.kept = [t / 10 for t in range(1000)]  # what grows is kept of documents
    assert report.problems() == problems[:4]
