"""The sections of the settings: target, engine elsewhere, adapters, caches, context, next edits, languages."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.config_rules import AUTO, Workspace, cores, host_and_port, option

REMOTE_KINDS = (
    *("", "llama-server", "vllm", "sglang", "llama-cpp-python"),
    *("ollama", "lmstudio", "mistral", "deepseek", "openai"),
)
"""Engines that a target may run on; empty: in this process."""

_LARGEST_CONTEXT = 8192  # tokens, that are chosen where the settings name none
_KV_TYPES = (AUTO, "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")


@dataclass(frozen=True)
class TargetConfig:
    """The target model.

    Attributes:
        path: the model: a GGUF file, or the name of one in the models folder. Empty is the embedded model.
        gpu_layers: how many layers run on the GPU, as llama.cpp counts them; ``auto``: as many as fit into its memory.
        threads: how many threads the model uses; ``auto`` and 0: as many as there are CPUs, 8 at most, and fewer where
            that is faster or other programs compute.
        context: how many tokens the model sees; 0 is what it was trained with, at most 8,192.
        kv_type: the type of the KV cache; ``auto`` is ``f16``.
        flash_attention: whether to use flash attention; ``auto`` (not on a CPU, where it makes short passes slower; on
            a GPU llama.cpp chooses), ``on`` or ``off``.
        fim: the order of a fill-in-the-middle prompt: ``auto`` (the model's preferred one), ``psm`` (prefix first) or
            ``spm`` (suffix first, which reads less with every key). Models that were not trained on it keep their own.
        rpc: other machines that run layers of the model: servers of llama.cpp's RPC backend, each ``host:port``.
            ``gpu_layers`` says how many layers. Use a network that you trust: nothing is encrypted.
    """

    path: str = option("", Workspace.NEVER, file="model")
    gpu_layers: int | str = option(AUTO, Workspace.NEVER, maximum=10_000, automatic=True)
    threads: int | str = option(AUTO, Workspace.LOWER, maximum=1024, automatic=True, stands_for=cores())
    context: int = option(0, Workspace.LOWER, maximum=1 << 20, stands_for=_LARGEST_CONTEXT)
    kv_type: str = option(AUTO, Workspace.LOWER, choices=_KV_TYPES, stands_for="f16")
    flash_attention: str = option("auto", Workspace.NEVER, choices=("auto", "on", "off"))
    fim: str = option("auto", Workspace.ANY, choices=("auto", "psm", "spm"))
    rpc: tuple[str, ...] = option((), Workspace.NEVER, texts=host_and_port)

    @property
    def set_gpu_layers(self) -> int | None:
        """None where they are chosen."""
        return None if isinstance(self.gpu_layers, str) else self.gpu_layers

    @property
    def set_threads(self) -> int:
        """The number of threads that the settings name; 0 where codespec is to choose it."""
        return 0 if isinstance(self.threads, str) else self.threads


@dataclass(frozen=True)
class RemoteConfig:
    """An engine elsewhere that the target runs on. Nothing of it can be set by a workspace: it sends code away.

    Attributes:
        kind: the engine; ``openai`` is any that answers ``/v1/completions``. Empty: the target runs here.
        url: the engine's address, such as ``http://127.0.0.1:8080``.
        model: the name that the engine knows the model by; empty: the only or first one that it has.
        vocabulary: the target's tokens: a GGUF file (it needs no weights), the name of one in the models folder, or a
            ``tokenizer.json``. Needed where tokens are verified here; without it texts are sent.
        mode: how text is made: ``score`` (codespec proposes tokens and the engine verifies them), ``stream`` (the
            engine writes alone) or ``auto`` (``score`` wherever that is at least as fast).
        context: how many tokens prompt and completion may have together; 0: as many as the engine says, else 4,096.
        key_env: the environment variable with the key; without it the system's keyring is asked.
        certificate: a file of CA certificates that may sign the engine's; empty: those of the system.
        silence_s: seconds without an answer after which a request is given up.
        fallback: what answers while the engine is away: ``local`` (the model of ``target``) or ``none``.
    """

    kind: str = option("", Workspace.NEVER, choices=REMOTE_KINDS)
    url: str = option("", Workspace.NEVER)
    model: str = option("", Workspace.NEVER)
    vocabulary: str = option("", Workspace.NEVER, file="model")
    mode: str = option("auto", Workspace.NEVER, choices=("auto", "score", "stream"))
    context: int = option(0, Workspace.NEVER, maximum=1 << 20)
    key_env: str = option("CODESPEC_API_KEY", Workspace.NEVER)
    certificate: str = option("", Workspace.NEVER)
    silence_s: float = option(10.0, Workspace.NEVER, minimum=0.1, maximum=600)
    fallback: str = option("local", Workspace.NEVER, choices=("local", "none"))


@dataclass(frozen=True)
class LoraConfig:
    """A LoRA adapter; in files and options its path alone may stand for it.

    Attributes:
        path: a GGUF file, or the name of one in the adapters folder. Empty: if the target cannot fill in the middle,
            the adapter that teaches it to, where there is one. ``none``: no adapter.
        scale: how strongly it changes the model, as a factor of the adapter's own scale; 0 is not at all.
    """

    path: str = option("", Workspace.ANY, file="adapter")
    scale: float = option(1.0, Workspace.ANY, maximum=100)


@dataclass(frozen=True)
class CacheConfig:
    """How many KV caches of earlier prompts are kept.

    Attributes:
        memory_mib: main memory for the KV caches of other documents, in MiB, so that the model need not read a
            document again when you return to it; 0 keeps none.
        saved_mib: disk space for the KV caches of a workspace, in MiB, so that the model need not read it again in the
            next session; 0 keeps none.
    """

    memory_mib: int = option(512, Workspace.LOWER, maximum=1 << 20)
    saved_mib: int = option(256, Workspace.LOWER, maximum=1 << 16)


@dataclass(frozen=True)
class ContextConfig:
    """The snippets of other files in prompts.

    Attributes:
        enabled: whether the model is shown pieces of other files of the workspace: what was edited or looked at lately,
            and signatures of imports. Secrets and ignored files never are.
        ring_chunks: how many recent positions snippets are taken from; 0 leaves out recent positions and open files.
        chunk_lines: how many lines around each recent position are shown.
        imports: whether the model is shown the signatures of what a file imports from its workspace.
    """

    enabled: bool = option(True, Workspace.OFF)
    ring_chunks: int = option(16, Workspace.LOWER, maximum=256)
    chunk_lines: int = option(64, Workspace.LOWER, minimum=4, maximum=512)
    imports: bool = option(True, Workspace.OFF)


@dataclass(frozen=True)
class EditsConfig:
    """Next edits.

    Attributes:
        mode: when next edits are offered: ``automatic`` (after a pause in typing, too), ``manual`` (only when asked
            for) or ``off`` (never; what is edited is not followed either).
        model: the model of next edits: a GGUF file (of Sweep's, Zeta's or Instinct's, for instance), or the name of one
            in the models folder. Empty is the embedded model.
        budget_ms: how long a next edit may take, in milliseconds.
    """

    mode: str = option("manual", Workspace.LOWER, choices=("automatic", "manual", "off"))
    model: str = option("", Workspace.NEVER, file="model")
    budget_ms: int = option(500, Workspace.LOWER, minimum=10, maximum=600_000)


@dataclass(frozen=True)
class LanguageConfig:
    """The settings of one language; empty and None follow the general setting."""

    draft: str = option("", Workspace.ANY, file="model")
    grammar: str = option("", Workspace.ANY, file="grammar")
    enabled: bool | None = option(None, Workspace.OFF)
