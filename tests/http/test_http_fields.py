"""What is wrong with a field of a body, in words that are true of the value that came."""

import math

import pytest

from codespec.http.apis.fields import Fields
from codespec.http.errors import HttpError


def test_the_upper_bound_of_a_whole_number_is_named():
    with pytest.raises(HttpError, match="a whole number from 1 to 2147483647"):
        Fields({"max_tokens": 2**31}, 400).integer("max_tokens", 16, 1)
    assert Fields({"max_tokens": 2**31 - 1}, 400).integer("max_tokens", 16, 1) == 2**31 - 1


def test_a_number_without_an_upper_bound():
    with pytest.raises(HttpError, match="a number of 0 or more"):
        Fields({"top": -1}, 400).number("top", 1.0, 0, math.inf)
