"""A field that is renamed where its class binds it: the rest of the class follows, and nothing else."""

import pytest

from codespec.edits.difference import applied
from codespec.edits.renames import rest_of_rename
from tests.edits.test_renames import request

DATACLASS = """@dataclass
class Circle:
    radius: float
    name: str = ""

    def area(self):
        return 3.14 * self.radius ** 2

    def __str__(self):
        return f"{self.name}: {self.radius}"


class Sphere:
    def volume(self):
        return self.radius ** 3


def scale(circle, radius):
    return Circle(circle.radius * radius)
"""
IN_INIT = """class Circle:
    def __init__(self, radius):
        self.radius: float = radius

    def grow(self, radius):
        self.radius += radius
        return self.radius, radius
"""


def finished(before: str, old: str, new: str) -> str:
    """The document once the first ``old`` was typed over, and the rest of the rename applied."""
    after = before.replace(old, new, 1)
    return applied(after, rest_of_rename(request("/a.py", before, after)))


def test_a_field_of_a_dataclass():
    expected = DATACLASS.replace("    radius: float", "    size: float")
    expected = expected.replace("3.14 * self.radius", "3.14 * self.size").replace("{self.radius}", "{self.size}")
    assert finished(DATACLASS, "radius: float", "size: float") == expected


def test_a_field_that_a_method_binds():
    assert finished(IN_INIT, "self.radius", "self.size") == IN_INIT.replace("self.radius", "self.size")


def test_a_method():
    text = "class A:\n    def area(self):\n        return 1\n\n    def twice(self):\n        return 2 * self.area()\n"
    assert finished(text, "area", "surface") == text.replace("area", "surface")


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (IN_INIT, "self.radius", "self.grow"),  # the class has it
        (IN_INIT + "        self.size = 1\n", "self.radius", "self.size"),
        (IN_INIT + "        getattr(self, 'radius')\n", "self.radius", "self.size"),  # found by its name
        (IN_INIT + "        (\n", "self.radius", "self.size"),
        (IN_INIT.replace("radius", "__radius"), "self.__radius", "self.__size"),
        (IN_INIT, "self.radius", "self.class"),
        (
            "class A(Base):\n    def f(self):\n        print(self.a)\n        print(self.a)\n",
            "self.a",
            "self.b",
        ),  # a use
        ("class A:\n    def f(self, other):\n        other.a = 1\n        self.a = other.a\n", "other.a", "other.b"),
    ],
)
def test_in_doubt_nothing_follows(text, old, new):
    assert finished(text, old, new) == text.replace(old, new, 1)
