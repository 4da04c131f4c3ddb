"""The engine on this machine: target and draft models loaded with llama.cpp, and speculative decoding over them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from time import perf_counter

from codespec.draft.costs import LONGEST
from codespec.draft.storage.profiles import Profiles, Setup, model_hash
from codespec.engine.adapters import Adapters, LoraRequest
from codespec.engine.calibration import ModelCosts
from codespec.engine.draft_files import DraftFiles
from codespec.engine.drafts import DRAFTS_BYTES, Drafts
from codespec.engine.engine import add_note
from codespec.engine.parallel import ParallelSequences
from codespec.engine.prefill_steps import prefill_steps
from codespec.engine.prompt_cache import PromptCache, PromptCacheSettings
from codespec.engine.slots import Slots
from codespec.engine.speculative_engine import SpeculativeEngine
from codespec.files import StrPath
from codespec.llama.agreement import rows_agree
from codespec.llama.context import EXACT_CHUNK, Context
from codespec.llama.devices import ResolvedSetting
from codespec.llama.devices import gpu_layers as layers_on_gpus
from codespec.llama.heads import HeadsSequence, HiddenStates, has_heads
from codespec.llama.model import Model, check_file
from codespec.llama.rpc import Servers
from codespec.llama.runtime import Cancellation
from codespec.models.fitted import filling_adapter
from codespec.models.trimmed import VOCABULARY_KEY
from codespec.protocols import Cancel, Chunk, CodespecError, GrammarState, Limits, Sampling, Target
from codespec.speculative.generate import Generator

LONGEST_AUTOMATIC_CONTEXT = 8192
SLOWLY = 25e6
"""Bytes of weights that a slow CPU multiplies with a token of a prompt in a millisecond."""


class LocalEngine(SpeculativeEngine):
    """A target, its drafts and their KV caches. One generation at a time, from one thread at a time.

    Args:
        target: a GGUF file.
        context_length: in tokens; 0 is what the target was trained with, at most 8,192.
        threads: 0 chooses by the size of the model.
        gpu_layers: of the target and of each draft model; None: as many as fit into the GPUs' memory, the target's
            first; none in exact decoding.
        draft_length: how many tokens are proposed at a time at most; 0: as many as are expected to save time.
        drafts_bytes: of memory that draft models take at most; those longest unused are freed.
        kv_type, flash_attention: of the target's KV cache, see ``Context``.
        rpc: RPC servers, each ``host:port``, that layers of the target go to like to GPUs; drafts stay here.
        exact: the same text whatever the draft, at the cost of speed: every decode has the same numerics.
        learnt_folder: where the n-grams of workspaces are kept, instead of the user's data folder.
        wrap: called with the sequence of the target and of each draft model, and the role (``target``, ``draft``);
            the object it returns decodes in its stead. For measuring, like ``clock``, the clock of the drafts.
        progress: called with 0..1 while the target loads.
        prompt_cache: how much of the KV caches of documents is kept; the default keeps nothing between runs.
        profiles: costs and acceptance rates of earlier runs; None: none, and none are saved.

    Raises:
        CodespecError: the target cannot be loaded.

    Attributes:
        drafts: the draft sources; ``costs`` and ``notes`` are its own.
        context: of the target.
        kept: the same as ``prompt_cache``.
        prompt_cache: the KV caches of earlier prompts; ``enter`` names the workspace.
    """

    def __init__(
        self,
        target: StrPath,
        *,
        context_length: int = 0,
        threads: int = 0,
        gpu_layers: int | None = None,
        draft_length: int = 0,
        drafts_bytes: int = DRAFTS_BYTES,
        exact: bool = False,
        kv_type: str = "auto",
        flash_attention: str = "auto",
        rpc: Sequence[str] = (),
        learnt_folder: StrPath | None = None,
        progress: Callable[[float], bool] | None = None,
        wrap: Callable[[Target, str], Target] = lambda sequence, role: sequence,
        clock: Callable[[], float] = perf_counter,
        profiles: Profiles | None = None,
        prompt_cache: PromptCacheSettings | None = None,
    ) -> None:
        if exact and gpu_layers:
            raise CodespecError("exact decoding works on the CPU only; set gpu_layers = 0")
        if exact and rpc:
            raise CodespecError("exact decoding works on this machine's CPU only; set rpc = [] for the target")
        self._servers = Servers(rpc)
        attention = {"kv_type": kv_type, "flash_attention": flash_attention}
        self.context = self._opened(
            Path(target), context_length, gpu_layers, progress, exact=exact, threads=threads, **attention
        )
        self._adapters = Adapters(self.context)
        profiles = profiles or Profiles(None)
        costs = ModelCosts(self.context, None, profiles)
        self._sequence = self.context.sequence()
        self._hidden = HiddenStates(self._sequence) if self.model.heads else None
        heads = self._heads if self._hidden is not None else None
        files = DraftFiles(self.context, gpu_layers, threads, profiles, wrap, heads=heads)
        drafts = Drafts(self.context, costs, files, profiles, clock, drafts_bytes, learnt_folder)
        self._parallel = ParallelSequences(self.context)
        self._slots = Slots(self)
        generator = Generator(
            wrap(self._sequence, "target"),
            None,
            self.model.vocabulary.end_tokens,
            # A padded forward pass has one chunk's rows at most.
            min(draft_length or LONGEST - 1, EXACT_CHUNK - 1 if self.context.padded else LONGEST - 1),
            on_pass=drafts.costs.observe,
            steps=lambda: prefill_steps(drafts.costs, self.context.padded, bool(self.model.gpu_layers)),
            whole_steps=self.context.whole_steps,
        )
        self.kept = self._cache_of(generator, prompt_cache or PromptCacheSettings())
        super().__init__(self.model, drafts, generator, self.kept)
        self._note_servers()

    def _opened(
        self,
        target: Path,
        wanted: int,
        gpu_layers: int | None,
        progress: Callable[[float], bool] | None,
        *,
        kv_type: str,
        flash_attention: str,
        exact: bool,
        threads: int,
    ) -> Context:
        """The target's context, of ``wanted`` tokens or what its model was trained with; sets ``model``."""
        check_file(target)
        longest, found = wanted or LONGEST_AUTOMATIC_CONTEXT, self._servers.gpus
        with ExitStack() as undo:
            undo.callback(self._servers.close)
            self._placed = layers_on_gpus(gpu_layers, target, longest, kv_type, flash_attention, exact, found)
            layers = int(self._placed.value)
            padded = exact and not kv_type == flash_attention == "auto"
            heads = has_heads(target)
            self.model = Model(
                target,
                gpu_layers=layers,
                plain_buffers=padded,
                heads=heads,
                servers=self._servers,
                progress=progress,
            )
            undo.callback(lambda: self.model.close())
            if exact and self.model.recurrent and (padded or not rows_agree(self.model)):
                raise CodespecError(
                    f"{target}: on this machine its recurrent layers give other results for a token alone than among "
                    "others, so `exact` cannot hold; leave it out, or choose another model"
                )
            if exact and not padded and not rows_agree(self.model):
                padded = True
                self.model.close()
                self.model = Model(target, gpu_layers=layers, plain_buffers=True, heads=heads, servers=self._servers)
            if self.model.metadata(VOCABULARY_KEY) is not None:
                raise CodespecError(f"{target}: a draft that has only some of its target's tokens; it can be no target")
            length = wanted or min(self.model.trained_context, LONGEST_AUTOMATIC_CONTEXT)
            context = Context(
                self.model,
                context_length=length,
                threads=threads,
                exact=exact,
                padded=padded,
                kv_type=kv_type,
                flash_attention=flash_attention,
            )
            undo.pop_all()
        return context

    def _heads(self) -> tuple[Context, Target]:
        assert self._hidden is not None
        context = self.context.alike(self.context.length, heads=True)
        return context, HeadsSequence(context, self._hidden)

    def _note_servers(self) -> None:
        if self._servers.warning:
            add_note(self.notes, self._servers.warning)
        if self._servers.addresses and not self.model.gpu_layers:
            why = self._placed.why or "gpu_layers = 0"
            add_note(self.notes, f"no layer is on {', '.join(self._servers.addresses)} (`target.rpc`): {why}")

    def _cache_of(self, generator: Generator, settings: PromptCacheSettings) -> PromptCache:
        setup = asdict(Setup.of(self.context, None))
        about = {"model": model_hash(self.model.path), **setup}
        return PromptCache(self._sequence, generator, settings, about)

    @property
    def name(self) -> str:
        """The target's file name without its suffix."""
        return self.model.path.stem

    @property
    def about(self) -> dict[str, object]:
        """``reading``: as the generator has it."""
        return {"reading": self._generator.reading}

    @property
    def reading(self) -> bool:
        """Whether a prompt is being decoded; from any thread."""
        return self._generator.reading is not None

    @property
    def context_length(self) -> int:
        """Tokens of prompt and text."""
        return self.context.length

    @property
    def threads(self) -> int:
        """Threads that the target decodes with."""
        return self.context.threads

    @property
    def choices(self) -> dict[str, ResolvedSetting]:
        """``gpu_layers``, ``kv_type``, ``flash_attention`` and ``threads`` as they are in force, and ``rpc`` where
        layers may be on servers."""
        names = ", ".join(self._servers.addresses)
        servers = {"rpc": ResolvedSetting(names)} if names else {}
        return {"gpu_layers": self._placed, **servers, **self.context.choices}

    def use_adapter(self, lora: LoraRequest | None) -> None:
        """As ``Engine.use_adapter``; ``notes`` tell of the problem, too.

        KV caches computed with other adapters are put aside until those are used again.

        Raises:
            CodespecError: the model is closed.
        """
        self._check_open()
        if self._adapters.use(lora):
            self.kept.change_adapter(self.context.adapter_key)
            self.costs.begin_anew()
        self.adapter_problem = self._adapters.problem
        if self.adapter_problem:
            add_note(self.notes, self.adapter_problem)

    @property
    def slots(self) -> Slots | None:
        """As ``Generating.slots``: none in exact mode, where a text must not depend on what is decoded beside it, nor
        with recurrent layers, whose sequences are decoded one by one, or a sliding window, whose cells are saved in
        another form."""
        plain = not self.context.exact and not self.model.recurrent and not self.model.sliding_window
        return self._slots if plain and self._slots.possible and self.context.pointer else None

    @cached_property
    def filling_adapter(self) -> Path | None:
        """As ``Engine.filling_adapter``."""
        return filling_adapter(self.model.path) if self.fim_format() is None else None

    def generate_together(
        self,
        prompt: Sequence[int],
        grammars: Sequence[GrammarState | None],
        samplings: Sequence[Sampling],
        limits: Limits | None = None,
        cancel: Cancel | None = None,
        stopped: Collection[int] = (),
    ) -> Iterator[tuple[int, Chunk]]:
        """As ``Generating.generate_together``: in one batch, without drafts; in exact mode one after the other."""
        if self.context.exact:
            # Cells that one fork gives up are taken by another, which then adds up in another order.
            yield from super().generate_together(prompt, grammars, samplings, limits, cancel, stopped)
            return
        samplings = [self.without_markers(each) for each in samplings]
        self.new_cancellation()
        self._turn_to(prompt)
        decoders = [self.decoder() for _ in samplings]
        with self.context.cancellable(self._cancellation), self._parallel.cancellable(self._cancellation):
            fork = self._parallel.of(self._sequence)
            steps = self._generator.together(
                prompt, samplings, limits or Limits(), grammars, stopped, self._stopped(cancel), fork
            )
            with closing(steps):  # type: ignore[type-var]  # a generator
                for index, step in steps:
                    yield index, decoders[index](step)

    def lacking(self, prompt: Sequence[int]) -> int:
        """As ``Generating.lacking``; what is kept of earlier prompts counts, too."""
        return min(super().lacking(prompt), len(prompt) - self.kept.longest(prompt))

    def reading_ms(self, tokens: int) -> float:
        """As ``Generating.reading_ms``: by what was read lately, else by what passes of many tokens take."""
        token_ms = self._generator.token_ms
        if not token_ms and self.costs.measured:
            token_ms = self.costs.kept(0)[LONGEST - 1] / (LONGEST - 1)
        elif not token_ms and not self.model.gpu_layers:
            token_ms = self.model.path.stat().st_size / SLOWLY
        return tokens * token_ms

    def chances(self, prompt: Sequence[int], texts: Sequence[str], cancel: Cancel | None = None) -> list[float]:
        """As ``Generating.chances``."""
        self.new_cancellation()
        self._turn_to(prompt)
        tokens = [self.vocabulary.tokenize(text) for text in texts]
        with self._cancellable(self._cancellation):
            return self._generator.chances(prompt, tokens, self._stopped(cancel))

    def _turn_to(self, prompt: Sequence[int]) -> None:
        self._check_open()
        self.kept.turn_to(prompt)

    def _check_open(self) -> None:
        """Refuse what would end the process in llama.cpp."""
        if not self.context.pointer:
            raise CodespecError("the model is closed; load it again")

    def _cancellable(self, cancellation: Cancellation) -> AbstractContextManager[object]:
        return self.context.cancellable(cancellation)

    def close(self) -> None:
        """Save what was learnt, free models and caches; a second call does nothing."""
        self.drafts.close()
        if self.context.pointer:
            self.kept.save()
        self._parallel.close()
        self._slots.close()
        self.context.close()
        self._adapters.close()
        self.model.close()
        self._servers.close()
