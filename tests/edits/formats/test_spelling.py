"""Names that the embedded model loses half way are those of the edits before."""

import pytest

from codespec.edits.formats import WindowPrompt
from codespec.edits.formats.embedded import Embedded
from codespec.edits.formats.replaced import Added, Replaced
from codespec.edits.formats.spelling import added, replaced
from codespec.edits.request import RecentEdit

TOLD = (Replaced("count", "total_of_rows"), Added("area", "height: int"), Replaced(")", ", x)"), Added("name", "as_is"))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (("count", "total_of_row"), ("count", "total_of_rows")),
        (("count", "width"), ("count", "total_of_rows")),
        (("count", "count: total_of_rows"), ("count", "count: total_of_rows")),
        (("counts", "totals"), ("counts", "totals")),
        ((")", ", y)"), (")", ", y)")),
    ],
)
def test_a_replacement_lost_half_way_is_that_of_an_edit_before(said, meant):
    assert replaced(Replaced(*said), TOLD) == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (("area", "heigth"), ("area", "height")),
        (("area", "heigth: int"), ("area", "height: int")),
        (("area", "heigth=heigth"), ("area", "height=height")),
        (("area", "height=1"), ("area", "height=1")),
        (("name", "as"), ("name", "as_is")),
        (("other", "heigth"), ("other", "heigth")),
    ],
)
def test_an_argument_lost_half_way_is_that_of_an_edit_before(said, meant):
    assert added(Added(*said), TOLD) == meant


def test_the_latest_edit_is_meant():
    recent = (RecentEdit("a.py", 0, "f(count)\n", "f(first)\n"), RecentEdit("a.py", 2, "g(count)\n", "g(second)\n"))
    prompt = WindowPrompt("a.py", "python", "h(count)\n", 0, 4, recent=recent)
    assert Embedded().read(" A:\ncount\nsecnd\n", prompt) == "h(second)\n"
