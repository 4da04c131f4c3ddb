"""Charts as SVG."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.plot import lines
from tests.present import present


@pytest.mark.parametrize("most", [1e-4, 0.7, 1, 9.99, 10, 33, 99.9, 12_345])
def test_lines_stay_inside_the_plot(most):
    text = lines("a < b", "n", "ms", [("one & all", [(1, most / 3), (33, most)], False), ("two", [(1, 0.0)], True)])
    root = ElementTree.fromstring(text)
    name = "{http://www.w3.org/2000/svg}"
    solid, dashed = root.findall(f"{name}polyline")
    places = [tuple(map(float, pair.split(","))) for pair in present(solid.get("points")).split()]
    assert all(60 <= x <= 620 and 48 <= y <= 388 for x, y in places)
    assert places[0][0] < places[1][0]
    assert places[0][1] > places[1][1]
    assert math.isclose(388 - places[0][1], (388 - places[1][1]) / 3, abs_tol=0.2)
    assert dashed.get("stroke-dasharray")
    assert {"a < b", "one & all", "two", "n", "ms"} <= {each.text for each in root.iter(f"{name}text")}


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="without points"):
        lines("", "", "", [("one", [], False)])
