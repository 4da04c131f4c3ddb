"""The sources that copy, by the name that statistics and settings know them by."""

from __future__ import annotations

from collections.abc import Callable

from codespec.draft.copying import CopyingSource
from codespec.draft.ngram import NgramDraft
from codespec.draft.window.window_draft import WindowDraft
from codespec.protocols import Vocabulary

COPYING: dict[str, Callable[[Vocabulary], CopyingSource]] = {
    "window": WindowDraft,
    "ngram": lambda vocabulary: NgramDraft(),
}
"""Each makes a source for texts of a vocabulary."""
