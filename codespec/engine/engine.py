"""What the rest of codespec sees of a target, wherever it runs: what generates, what drafts, and what is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from codespec.draft.ngram_store import NgramStore, WorkspaceNgrams
from codespec.engine.adapters import LoraRequest
from codespec.engine.one_by_one import one_by_one
from codespec.files import StrPath
from codespec.grammar import Grammar
from codespec.languages import Language
from codespec.llama.devices import ResolvedSetting
from codespec.models.fim import FimFormat, Order
from codespec.protocols import Cancel, Chunk, GrammarState, Limits, Sampling, Statistics, TokenChange, Vocabulary

if TYPE_CHECKING:
    from codespec.engine.slots import Slots

_log = logging.getLogger("codespec")


class TextVocabulary(Vocabulary, Protocol):
    """A vocabulary that prompts are made with."""

    @property
    def beginning(self) -> int | None:
        """The token that every text begins with, None if the model was trained without."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class ChatTemplate:
    """How a model was trained to see conversations.

    Attributes:
        source: a jinja2 template.
        beginning, end: the names of the tokens at the beginning and end of a text; empty where there are none.
    """

    source: str
    beginning: str = ""
    end: str = ""


def add_note(notes: list[str], text: str) -> None:
    """Tell the user something, in the log and among the ``notes`` of an engine, unless it was told already."""
    if text not in notes:
        notes.append(text)
        _log.warning(text)


class KeptPrompts:
    """What is kept of prompts that were read, by workspace. As it stands here, nothing: a remote engine has its own."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of main memory that it takes; from any thread."""
        return 0

    @property
    def lasting(self) -> bool:
        """Whether any of it is kept on the disk for the next run."""
        return False

    def enter(self, workspace: str) -> None:
        """Prompts from now on belong to this workspace; empty: nothing of them may be kept on the disk."""

    def forget(self, workspace: str) -> None:
        """Drop what is kept of a workspace.

        Raises:
            OSError: a file cannot be deleted.
        """


class Drafting:
    """What drafts for a target, and learns. As it stands here nothing does: an engine elsewhere drafts by itself.

    Args:
        learnt: the n-grams of workspaces.

    Attributes:
        learns: whether n-grams are drafted from; if not, what was learnt for other engines can still be forgotten.
        chosen: the draft model in use.
    """

    learns = False
    chosen: Path | None = None

    def __init__(self, learnt: NgramStore) -> None:
        self.learnt = learnt

    @property
    def choices(self) -> Mapping[str, ResolvedSetting]:
        """The settings in force of the draft model in use; empty without one. From any thread."""
        return {}

    @property
    def adapter_problem(self) -> str:
        """Why the draft model in use decodes without the LoRA adapter that it was to have; from any thread."""
        return ""

    def find(self, name: StrPath, language: Language) -> Path | None:
        """The file of a draft for this target; None where no draft model is wanted, known or of use.

        Args:
            name: ``none``, a name, a path, or ``auto``: the best installed one with the target's vocabulary, see
                ``best_draft``, else the embedded one of the language.

        Raises:
            CodespecError: there is no draft of this name or path.
        """
        return None

    def choose(self, path: StrPath | None, wait: bool = True) -> None:
        """Draft with this model from the next generation on; None for no draft model. Loads it the first time.

        One with another vocabulary works at a price, which the engine's ``notes`` then name.

        Args:
            wait: False returns at once: while the model loads, the previous one serves.

        Raises:
            CodespecError: it cannot be loaded; the draft stays what it was.
        """

    def use_adapter(self, lora: LoraRequest | None) -> None:
        """Decode the draft model's tokens with a LoRA adapter; one that cannot be used is left out, see
        ``adapter_problem``."""

    def use_learnt(self, learnt: WorkspaceNgrams | None = None, following: Sequence[int] = ()) -> None:
        """Draft from the next generation on with n-grams of ``learnt``, too; None: without any of a workspace.

        Args:
            following: tokens after the cursor, which n-grams must not propose again.
        """

    def remember(self, prompt: Sequence[int], generated: Sequence[int]) -> None:
        """Add the text generated after a prompt to the n-grams: the next prompt mostly differs by a key."""

    def forget_generated(self) -> None:
        """Forget the texts of ``remember``."""

    def save(self, every_s: float = 0.0) -> None:
        """Save the drafts' acceptance rates, unless that was done less than ``every_s`` seconds ago."""


class Generating(Protocol):
    """A target that generates. One generation at a time, from one thread at a time.

    Attributes:
        vocabulary: the target's tokens, or bytes where an engine takes texts alone.
    """

    vocabulary: TextVocabulary

    @property
    def name(self) -> str:
        """The target's, for people."""
        ...

    @property
    def context_length(self) -> int:
        """Tokens of prompt and text."""
        ...

    @property
    def statistics(self) -> Statistics:
        """The counts of the current or last generation."""
        ...

    @property
    def chat_template(self) -> ChatTemplate | None:
        """That of the model file; None without one, or where the engine elsewhere does not tell."""
        return None

    def fim_format(self, order: Order | None = None) -> FimFormat | None:
        """The layout of fill-in-the-middle prompts, None if the target cannot fill in the middle.

        Args:
            order: overrides the target's preferred one, if it was trained on this one as well.
        """
        ...

    def lacking(self, prompt: Sequence[int]) -> int:
        """How many tokens of a prompt are to be read before a text for it begins; all, where that is not known."""
        return len(prompt)

    def reading_ms(self, tokens: int) -> float:
        """About how long the target reads so many tokens of a prompt, in milliseconds; 0 where that is not known."""
        return 0.0

    def pass_ms(self, context: int) -> float:
        """About what a target call over one token takes after so many tokens, in milliseconds."""
        ...

    def grammar_state(self, grammar: Grammar, most: int | None = None) -> GrammarState:
        """The start state of a grammar over this target's vocabulary.

        Args:
            most: tokens that the text may have, see ``Grammar.state``.
        """
        ...

    def generate(
        self,
        prompt: Sequence[int],
        grammar: GrammarState | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
        cancel: Cancel | None = None,
        *,
        language: str = "",
        window: Sequence[int] = (),
        changes: Sequence[TokenChange] = (),
        document: Sequence[int] = (),
    ) -> Iterator[Chunk]:
        """Generate text in chunks of whole characters; close the iterator to stop early.

        Args:
            prompt: token ids.
            grammar: constrains the text, starting from this state, which is advanced.
            language: of the text; acceptance rates are learnt for each language apart.
            window: tokens of a text that the generated one probably repeats from its beginning, with few changes. It is
                drafted from, where this engine drafts; the text is the same without.
            changes: tokens before and after edits made lately, which the generated text may repeat elsewhere.
            document: tokens that stand around the window and not in the prompt, ``BREAK`` (``draft.ngram``) between
                texts; what is new in the generated text often stands there.

        Raises:
            CodespecError: the prompt is too long, or decoding failed.
        """
        ...

    def generate_together(
        self,
        prompt: Sequence[int],
        grammars: Sequence[GrammarState | None],
        samplings: Sequence[Sampling],
        limits: Limits | None = None,
        cancel: Cancel | None = None,
        stopped: Collection[int] = (),
    ) -> Iterator[tuple[int, Chunk]]:
        """Generate at most ``TOGETHER`` texts for one prompt in chunks, each with the index of its text. As it stands
        here one is generated after the other.

        Args:
            grammars, samplings: one for each text.
            stopped: indices of texts that are to end; the caller may add to it meanwhile.

        Raises:
            CodespecError: as ``generate``.
        """

        def generate(grammar: GrammarState | None, sampling: Sampling) -> Iterator[Chunk]:
            return self.generate(prompt, grammar, sampling, limits, cancel)

        return one_by_one(generate, lambda: self.statistics, grammars, samplings, stopped)

    @property
    def slots(self) -> Slots | None:
        """Where texts of several prompts are written side by side; None where this engine writes one at a time."""
        return None

    def prefill(self, prompt: Sequence[int], cancel: Cancel | None = None) -> int:
        """Have the target read a prompt, for a later ``generate``; ends a running generation.

        Returns:
            How many tokens were decoded.

        Raises:
            CodespecError: the prompt is too long, or decoding failed.
        """
        ...

    def chances(self, prompt: Sequence[int], texts: Sequence[str], cancel: Cancel | None = None) -> list[float]:
        """How likely the target holds each text after a prompt: the natural logarithm, neither grammar nor sampling
        applied. Empty where the engine does not tell, or was stopped."""
        return []


class Engine(Generating, Protocol):
    """A target, what drafts for it, and what is kept of prompts; those who load it also measure and close it.

    Attributes:
        drafts: what drafts, and learns.
        prompt_cache: what is kept of earlier prompts.
        notes: messages for the user about what is in use, a sentence or two each; see ``add_note``.
        adapter_problem: why the target decodes without the LoRA adapter that it was to have; empty where it has it.
    """

    drafts: Drafting
    prompt_cache: KeptPrompts
    notes: list[str]
    adapter_problem: str = ""

    @property
    def threads(self) -> int:
        """Threads of this machine that the target decodes with; 0 for an engine elsewhere."""
        return 0

    @property
    def choices(self) -> Mapping[str, ResolvedSetting]:
        """The settings of the target that are in force; empty where they are the engine's own affair."""
        return {}

    @property
    def reading(self) -> bool:
        """Whether a prompt is being read, a step of which always runs to its end; from any thread."""
        return False

    @property
    def about(self) -> Mapping[str, object]:
        """What else the status says of it, as plain data; from any thread."""
        ...

    @property
    def filling_adapter(self) -> Path | None:
        """The LoRA adapter that teaches the target to fill in; None where it can, or where none is at hand."""
        return None

    def use_adapter(self, lora: LoraRequest | None) -> None:
        """Decode from the next generation on with this LoRA adapter; one that cannot be used is left out, see
        ``adapter_problem``."""
        ...

    def warm_up(self) -> None:
        """Prepare the vocabulary for grammars, which the first request would wait for.

        Raises:
            CodespecError: no grammar can be used with this vocabulary.
        """
        ...

    def measure(self, go_on: Callable[[], bool]) -> bool:
        """Measure the costs of forward passes, where no earlier run has.

        Args:
            go_on: asked before every forward pass; False stops.

        Returns:
            Whether all is measured; False where ``go_on`` or ``abort`` stopped it: the next call goes on.
        """
        return True

    def abort(self) -> None:
        """Stop the running generation or measurement, from any thread."""
        ...

    def close(self) -> None:
        """Save what was learnt, free everything; a second call does nothing."""
        ...
