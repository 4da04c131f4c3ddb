"""The layout of a model is told by its name, where its tokens are those of others."""

import pytest

from codespec.edits.formats.choose import format_of
from tests.edits.scripted import Bytes, scripted_engine


class Qwen(Bytes):
    """As many tokens as Qwen's."""

    size = 151_936


# The files that the models' makers publish, and conversions by others.
@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("sweep-next-edit-0.5b.q8_0", "sweep"),
        ("sweep-next-edit-1.5b.q8_0.v2", "sweep"),
        ("sweep-next-edit-v2-7B-Q4_K_M", "sweep 2"),
        ("sweep-next-edit-v2-7b-q4_k_m", "sweep 2"),
        ("instinct-Q4_K_M", "instinct"),
        ("qwen2.5-coder-1.5b-q8_0", None),
    ],
)
def test_names(name, layout):
    engine = scripted_engine()
    engine.name, engine.vocabulary = name, Qwen()
    found = format_of(engine)
    assert (found.name if found is not None else None) == layout
