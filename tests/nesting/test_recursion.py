"""Nothing that reads a document calls itself, but where that has a bound; nor does it ask a node for its parent."""

import re
from pathlib import Path

import pytest

from tests.nesting.recursion import PACKAGE, recursive

READS_DOCUMENTS = ("completion", "early_errors", "edits", "languages", "lsp", "privacy", "syntax")
BOUNDED = {
    "syntax.literals:_values": "60 nodes",
    "languages.python.outline:_imports": "4 blocks",
    "completion.prompt.imports:ImportedSignatures._named": "3 modules",
    "privacy.leaving:Leaving._of_list": "200 levels of a body",
    "privacy.leaving:Leaving._texts": "200 levels of a body",
}
OTHER_OBJECTS = {
    # Methods that call one of the same name on a part of theirs, which is of another class.
    "completion.prompt.prompt:Prompts._as_plain",
    "completion.prompt.prompt:Prompts.tokens",
    "completion.prompt.timely:TimelyPrompts.prompt",
    "edits.formats.embedded:Embedded.prompt",
    "edits.formats.instinct:Instinct.prompt",
    "edits.formats.sweep:SweepV2.prompt",
    "edits.formats.zeta2:Zeta2.prompt",
    "edits.formats.zeta2:Zeta21.prompt",
    "lsp.next_edits:_Followed.text",
}
# From the root to the node, each time; a cursor, or the way down to a node, knows it.
_FROM_THE_ROOT = re.compile(
    r"\b(?:node|name|leaf|child|parent|statement|block)\.parent\b|\.(?:prev|next)_(?:named_)?sibling\b"
)


def test_what_reads_documents_does_not_call_itself():
    found = recursive(sorted(PACKAGE.rglob("*.py")))
    assert {each for each in found if each.startswith(READS_DOCUMENTS)} == {*BOUNDED, *OTHER_OBJECTS}


@pytest.mark.parametrize("folder", ["early_errors", "syntax", "edits", "completion", "languages"])
def test_no_node_is_asked_for_its_parent_or_siblings(folder):
    files = [path for path in sorted((PACKAGE / folder).rglob("*.py")) if path.name != "scopes.py"]
    asked = [
        path.name for path in files if _FROM_THE_ROOT.search(re.sub(r'"""[\s\S]*?"""', "", path.read_text("utf-8")))
    ]
    assert asked == []


def test_the_finder_finds(monkeypatch):
    """Functions that call themselves: directly, over another one, over what is passed on, and as methods."""
    path = PACKAGE / "syntax" / "none.py"
    text = (
        "def a(x): return a(x.child)\n"
        "def b(x): return c(x)\n"
        "def c(x): return list(map(b, x.children))\n"
        "class D:\n"
        "    def e(self, x): return [self.e(y) for y in x]\n"
        "    def f(self, x): return self.g(x)\n"
        "    def g(self, x): return x.f()\n"
    )

    monkeypatch.setattr(Path, "read_text", lambda *_: text)
    assert recursive([path]) == {f"syntax.none:{name}" for name in ("a", "b", "c", "D.e")}
