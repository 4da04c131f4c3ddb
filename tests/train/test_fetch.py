"""Which packages a manifest asks for."""

import pytest

pytest.importorskip("torch", reason="torch is not installed; `make test-train` installs it and runs this file")

from benchmarks.training.fetch import versions_before

WANTED = [(name, "3.0", frozenset()) for name in ("flask", "npm/koa", "debian/golang-x", "cpython/abc")]


def asked(number, **named):
    packages = [{"package": name.replace("_", "/"), "previous": previous} for name, previous in named.items()]
    return [(name, version) for name, version, _ in versions_before(packages, WANTED, number)]


def test_without_names_the_version_before_is_any_that_is_older():
    assert asked(1) == [("flask", "<3.0"), ("npm/koa", "<3.0")]
    assert asked(2) == []


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1, [("flask", "2.2"), ("npm/koa", "2.9")]), (2, [("flask", "2.1")]), (3, [])],
)
def test_versions_that_are_named(number, expected):
    assert asked(number, flask=["2.2", "2.1"], npm_koa="2.9") == expected
