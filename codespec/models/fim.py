"""The fill-in-the-middle (FIM) layout of prompts: one table of model families, one layout for each model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from codespec.llama.model import LlamaVocabulary, Model

Order = Literal["psm", "spm"]
Snippets = Literal["files", "paths", "pluses", "comments"]
"""How pieces of other files are shown: as ``files`` between markers of their own; as text at the prefix's beginning,
under their ``paths`` in a comment, under ``pluses`` and the path, or every line a comment."""


@dataclass(frozen=True)
class Family:
    """The FIM markers and orders that a family of models was trained with.

    Attributes:
        markers: the names of the tokens before prefix, suffix and middle; an empty one does not exist. None: whatever
            llama.cpp finds.
        orders: what it was trained on, the preferred one first.
        suffix_first: its suffix-prefix-middle order is ``<SUF>suffix<PRE>prefix<MID>``, and not the second form of
            Bavarian et al., ``<PRE><SUF>suffix<MID>prefix``.
        named: what the model's name must match, where its tokens do not tell it from others.
        unlike: what no name of it may match: models that were trained further, and on something else.
        needs: a token that it must have.
        repository, file: the names of the tokens before the name of a repository, and before the path of a file.
        repository_end: what follows the name of a repository.
        path_inside: a file's path stands after the marker of the prefix, as its first line.
        path_alone: the file's path is shown in prompts without other files, too.
    """

    name: str
    markers: tuple[str, str, str] | None
    orders: tuple[Order, ...] = ("psm",)
    suffix_first: bool = False
    named: str = ""
    unlike: str = ""
    needs: str = ""
    repository: str = ""
    file: str = ""
    repository_end: str = "\n"
    path_inside: bool = False
    path_alone: bool = False
    snippets: Snippets = "comments"


_PIPES = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_PLAIN = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")

FAMILIES = (
    # Trained by codespec.train on both orders; its GGUF names the preferred one. A header begins every text.
    Family(
        "codespec", _PIPES, ("spm", "psm"), named="^codespec", repository="<|repo_name|>", file="<|file_sep|>",
        path_alone=True, snippets="files",
    ),
    # arXiv 2510.05788: "S-P-M order". The model card: <filename>a.py\n…<filename>b.py\n<fim_suffix>…<fim_prefix>….
    # Mellum 2 (arXiv 2605.31268) has the tokens and both orders; in this one it was measured (tsugi.nvim, 90 % right).
    Family(
        "mellum", _PLAIN, ("spm",), suffix_first=True, named="mellum", file="<filename>", path_alone=True,
        snippets="files",
    ),
    # arXiv 2405.04324, section 3.2: both orders, as StarCoder, whose tokenizer it uses; 2407.13739: whole repositories.
    Family(
        "granite", _PLAIN, ("psm", "spm"), named="granite", repository="<reponame>", file="<filename>",
        repository_end="", snippets="files",
    ),
    # Granite 4, dense and hybrid: the tokens are those of its "Prompt engineering guide v2"; suffix first it writes
    # nothing that is right (measured for tsugi.nvim). How it was shown other files is not published.
    Family("granite4", _PIPES, named="granite"),
    # <[fim-suffix]>suffix<[fim-prefix]>prefix<[fim-middle]> (arXiv 2506.03524). Zeta 2 went on from it, to next edits.
    Family(
        "seed-coder", ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"), ("spm",), suffix_first=True,
        named="seed.?coder", unlike="zeta",
    ),
    # Falcon-H1-Tiny-Coder (llama.cpp's PR 19249, after tiiuae's "#fim-format").
    Family("falcon-h1", ("<|prefix|>", "<|suffix|>", "<|middle|>"), named="falcon"),
    # arXiv 2402.19173, section 5.1: <repo_name>name<file_sep>path\ncode<file_sep><fim_prefix>path\nprefix<fim_suffix>….
    # Half of it in the second form of SPM (Megatron-LM's `permute`, fim_spm_rate 0.5).
    Family(
        "starcoder2", _PLAIN, ("psm", "spm"), needs="<file_sep>", repository="<repo_name>", file="<file_sep>",
        repository_end="", path_inside=True, snippets="files",
    ),
    # arXiv 2305.06161, section 5.1; single files only.
    Family("starcoder", _PLAIN, ("psm", "spm")),
    # The CodeGemma report, section 2: both orders, but the form of the other one is not published.
    Family("codegemma", _PIPES, needs="<|file_separator|>"),
    # arXiv 2409.12186, figure 3: <|repo_name|>name\n<|file_sep|>path\ncode\n<|file_sep|>path\n<|fim_prefix|>….
    Family(
        "qwen", _PIPES, needs="<|repo_name|>", repository="<|repo_name|>", file="<|file_sep|>", path_alone=True,
        snippets="files",
    ),
    # arXiv 2401.14196, sections 2.2 and 3.1: files follow each other, each under its path in a comment; PSM only.
    Family("deepseek", ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"), snippets="paths"),
    # arXiv 2308.12950, section 2.3: half PSM, half SPM, which does worse where a token is split at the cursor.
    Family("codellama", ("▁<PRE>", "▁<SUF>", "▁<MID>"), ("psm", "spm")),
    Family("codellama", ("<PRE>", "<SUF>", "<MID>"), ("psm", "spm")),
    # mistral-common, encode_fim: [SUFFIX]suffix[PREFIX]prefix. Others of Mistral's have the tokens, not the training.
    Family(
        "codestral", ("[PREFIX]", "[SUFFIX]", ""), ("spm",), suffix_first=True, named="codestral", snippets="pluses"
    ),
    # What llama.cpp knows and this table does not: its own way of asking (`/infill`).
    Family("other", None, path_alone=True, snippets="files"),
)  # fmt: skip


@dataclass(frozen=True)
class FimFormat:
    """The fill-in-the-middle layout of one model; all token ids are the model's own.

    Attributes:
        middle: None where no token stands before the middle.
        order: ``psm`` is ``<PRE>prefix<SUF>suffix<MID>``, ``spm`` is ``<PRE><SUF>suffix<MID>prefix``
            (Bavarian et al., arXiv 2207.14255, section 3), or with ``suffix_first`` ``<SUF>suffix<PRE>prefix<MID>``.
        file_separator: stands before a file and its path, None where the model has no such token.
        beginning: the token every text begins with, if any.
        repository: stands before the name of the repository, None where the model has no such token.
        family: its entry in the table.
        names: of the markers, as they may stand in a text by chance.
    """

    prefix: int
    suffix: int
    middle: int | None
    order: Order
    file_separator: int | None = None
    beginning: int | None = None
    repository: int | None = None
    family: Family = FAMILIES[-1]
    names: tuple[str, ...] = ()

    @property
    def markers(self) -> frozenset[int]:
        """The control tokens of the layout."""
        ids = (self.prefix, self.suffix, self.middle, self.file_separator, self.repository, self.beginning)
        return frozenset(token for token in ids if token is not None)

    def arrange(self, header: list[int], prefix: list[int], suffix: list[int]) -> list[int]:
        """The prompt, arranged from its tokenized parts."""
        start = [self.beginning] if self.beginning is not None else []
        middle = [self.middle] if self.middle is not None else []
        if self.order == "psm":
            return [*start, *header, self.prefix, *prefix, self.suffix, *suffix, *middle]
        if self.family.suffix_first:
            return [*start, *header, self.suffix, *suffix, self.prefix, *prefix, *middle]
        return [*start, *header, self.prefix, self.suffix, *suffix, *middle, *prefix]


def fim_format(model: Model, order: Order | None = None) -> FimFormat | None:
    """The layout that ``model`` was trained with, None if it cannot fill in the middle.

    Args:
        order: overrides the model's preferred one, if it was trained on this one as well.
    """
    vocabulary = model.vocabulary
    for family in FAMILIES:
        found = _markers(vocabulary, family) if _may_be(model, family) else None
        if found is None:
            continue
        prefix, suffix, middle = found
        preferred = family.orders[0]
        if family.name == "codespec":
            preferred = "spm" if model.metadata("codespec.fim.order") == "spm" else "psm"
        separator, repository = (_marker(vocabulary, family, *each) for each in _FILE_MARKERS)
        tokens = (prefix, suffix, middle, separator, repository, vocabulary.beginning)
        names = {vocabulary.name(token).decode("utf-8", "replace") for token in tokens if token is not None}
        return FimFormat(
            prefix=prefix,
            suffix=suffix,
            middle=middle,
            order=order if order in family.orders else preferred,
            file_separator=separator,
            beginning=vocabulary.beginning,
            repository=repository,
            family=family,
            names=tuple(sorted(names)),
        )
    return None


def _may_be(model: Model, family: Family) -> bool:
    if family.needs and token_named(model.vocabulary, family.needs) is None:
        return False
    if family.name == "codespec":
        return model.metadata("codespec.fim.order") is not None
    keys = ("general.name", "general.basename", "general.architecture")
    names = [model.path.stem, *(model.metadata(key) or "" for key in keys)]
    if family.unlike and any(re.search(family.unlike, name, re.IGNORECASE) for name in names):
        return False
    return any(re.search(family.named, name, re.IGNORECASE) for name in names)


def _markers(vocabulary: LlamaVocabulary, family: Family) -> tuple[int, int, int | None] | None:
    """The tokens before prefix, suffix and middle."""
    prefix, suffix, middle = (_marker(vocabulary, family, *each) for each in _MARKERS)
    needs_middle = family.markers is None or family.markers[2]
    if prefix is None or suffix is None or (needs_middle and middle is None):
        return None
    return prefix, suffix, middle


_MARKERS = ((0, "pre"), (1, "suf"), (2, "mid"))
_FILE_MARKERS = ((3, "sep"), (4, "rep"))


def _marker(vocabulary: LlamaVocabulary, family: Family, index: int, known: str) -> int | None:
    """A token by its name in the table, or by llama.cpp's name for it where the table has none."""
    if family.markers is None:
        return vocabulary.fim_token(known)
    return token_named(vocabulary, (*family.markers, family.file, family.repository)[index])


def token_named(vocabulary: LlamaVocabulary, name: str) -> int | None:
    """The special token of this name, None if there is none."""
    if not name:
        return None
    # Among what the tokenizer makes of the name: names of a hundred thousand tokens need not be looked through.
    tokens = vocabulary.tokenize(name, special=True)
    return next((token for token in tokens if vocabulary.name(token) == name.encode()), None)
