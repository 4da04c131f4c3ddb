"""Models of architectures with recurrent layers: random weights, and the embedded model's vocabulary.

python -m tests.hybrid_models OUT.gguf ARCHITECTURE [--width 2048] [--layers 28]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter

from codespec.models.registry import EMBEDDED_TARGET

ARCHITECTURES = ("qwen35", "lfm2", "falcon-h1", "granitehybrid", "nemotron_h", "llama")
"""Gated delta nets, short convolutions, Mamba-2 beside attention, before it (twice); the last has attention alone."""
WIDTH, LAYERS, HEAD, KV_HEADS = 128, 4, 32, 2
"""Of the smallest; a wider model has heads of 128, as real ones have."""
_COPIED = ("tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")


def write(
    path: Path, architecture: str, seed: int = 0, heads: str = "", width: int = WIDTH, layers: int = LAYERS
) -> Path:
    """Write one of ``ARCHITECTURES``.

    Args:
        heads: of qwen35 alone, a head that predicts further tokens: ``random``, or ``clear``, whose logits are those of
            the state that it reads, or ``broken``, which computes no numbers.
        width: a power of two, 128 or more.
        layers: a multiple of four.
    """
    _Writer(path, architecture, seed, heads, width, layers).write()
    return path


class _Writer:
    def __init__(self, path: Path, architecture: str, seed: int, heads: str, width: int, layers: int) -> None:
        self._heads, self._width, self._layers, wide = heads, width, layers, width > WIDTH
        self._head_width = 128 if wide else HEAD
        self._forward_width = 3 * width
        self._attention_heads, self._kv_heads = width // self._head_width, KV_HEADS
        self._mamba_sizes = (4, 2 * width, 128, width // 32, 1) if wide else (4, 2 * width, 16, 4, 1)
        self._delta_sizes = (128, width // 256, width // 128) if wide else (32, 2, 4)
        self._file, self._name = GGUFWriter(path, architecture), architecture
        self._random = np.random.default_rng(seed)

    def write(self) -> None:
        self._vocabulary()
        self._numbers()
        recurrent = [self._recurrent(at) for at in range(self._layers)]
        {
            "qwen35": self._qwen35,
            "lfm2": self._lfm2,
            "falcon-h1": self._falcon,
            "granitehybrid": self._granite,
            "nemotron_h": self._nemotron,
            "llama": self._llama,
        }[self._name](recurrent)
        self._file.write_header_to_file()
        self._file.write_kv_data_to_file()
        self._file.write_tensors_to_file()
        self._file.close()

    def _recurrent(self, layer: int) -> bool:
        return (layer + 1) % 4 != 0 if self._name == "qwen35" else layer % 2 == 0

    def _vocabulary(self) -> None:
        file, fields = self._file, GGUFReader(EMBEDDED_TARGET).fields
        tokens = fields["tokenizer.ggml.tokens"].contents()
        file.add_tokenizer_model(fields["tokenizer.ggml.model"].contents())
        file.add_tokenizer_pre(fields["tokenizer.ggml.pre"].contents())
        file.add_token_list(tokens)
        file.add_token_types(fields["tokenizer.ggml.token_type"].contents())
        if "tokenizer.ggml.merges" in fields:
            file.add_token_merges(fields["tokenizer.ggml.merges"].contents())
        for key in _COPIED:
            if key in fields:
                file.add_uint32(key, fields[key].contents())
        file.add_vocab_size(len(tokens))
        self._matrix("token_embd.weight", len(tokens), self._width)

    def _numbers(self) -> None:
        file = self._file
        file.add_name(f"random {self._name}")
        file.add_context_length(8192)
        file.add_embedding_length(self._width)
        file.add_block_count(self._layers + bool(self._heads))
        file.add_head_count(self._attention_heads)
        file.add_key_length(self._head_width)
        file.add_value_length(self._head_width)
        file.add_rope_dimension_count(self._head_width)
        file.add_rope_freq_base(10000.0)
        file.add_layer_norm_rms_eps(1e-5)
        file.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)

    def _floats(self, name: str, *shape: int, value: float | None = None, scale: float = 0.5) -> None:
        random = self._random.standard_normal(shape, dtype=np.float32) * scale
        self._file.add_tensor(name, random if value is None else np.full(shape, value, np.float32))

    def _matrix(self, name: str, rows: int, columns: int, values: npt.NDArray[np.float32] | None = None) -> None:
        random = self._random.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns)
        kind = GGMLQuantizationType.Q8_0
        data = gguf.quants.quantize(random if values is None else values, kind)
        self._file.add_tensor(name, data, raw_dtype=kind)

    def _nothing(self, columns: int) -> npt.NDArray[np.float32]:
        return np.zeros((self._width, columns), np.float32)

    def _attention(self, block: str, queries: int = 1, silent: bool = False) -> None:
        self._matrix(block + "attn_q.weight", queries * self._width, self._width)
        self._matrix(block + "attn_k.weight", self._kv_heads * self._head_width, self._width)
        self._matrix(block + "attn_v.weight", self._kv_heads * self._head_width, self._width)
        self._matrix(
            block + "attn_output.weight", self._width, self._width, self._nothing(self._width) if silent else None
        )

    def _norm(self, name: str, *shape: int) -> None:
        self._floats(name, *(shape or (self._width,)), value=1.0)

    def _forward(self, block: str, norm: str = "ffn_norm.weight", silent: bool = False) -> None:
        self._norm(block + norm)
        self._matrix(block + "ffn_gate.weight", self._forward_width, self._width)
        self._matrix(block + "ffn_up.weight", self._forward_width, self._width)
        self._matrix(
            block + "ffn_down.weight",
            self._width,
            self._forward_width,
            self._nothing(self._forward_width) if silent else None,
        )

    def _states(self, kernel: int, inner: int, state: int, heads: int, groups: int) -> None:
        file = self._file
        file.add_ssm_conv_kernel(kernel)
        file.add_ssm_inner_size(inner)
        file.add_ssm_state_size(state)
        file.add_ssm_time_step_rank(heads)
        file.add_ssm_group_count(groups)

    def _mamba(self, block: str, kernel: int, inner: int, state: int, heads: int, groups: int) -> None:
        convolved = inner + 2 * groups * state
        self._matrix(block + "ssm_in.weight", inner + convolved + heads, self._width)
        self._floats(block + "ssm_conv1d.weight", convolved, kernel)
        self._floats(block + "ssm_conv1d.bias", convolved, value=0.0)
        self._floats(block + "ssm_dt.bias", heads, value=0.5)
        self._floats(block + "ssm_a", heads, 1, value=-1.0)
        self._floats(block + "ssm_d", heads, 1, value=1.0)
        self._norm(block + "ssm_norm.weight", groups, inner // groups)
        self._matrix(block + "ssm_out.weight", self._width, inner)

    def _lfm2(self, recurrent: list[bool]) -> None:
        self._file.add_feed_forward_length(self._forward_width)
        self._file.add_array("lfm2.attention.head_count_kv", [0 if each else self._kv_heads for each in recurrent])
        self._file.add_uint32("lfm2.shortconv.l_cache", 3)
        self._norm("token_embd_norm.weight")
        for at, convolution in enumerate(recurrent):
            block = f"blk.{at}."
            self._norm(block + "attn_norm.weight")
            self._forward(block)
            if convolution:
                self._floats(block + "shortconv.conv.weight", self._width, 3)
                self._matrix(block + "shortconv.in_proj.weight", 3 * self._width, self._width)
                self._matrix(block + "shortconv.out_proj.weight", self._width, self._width)
            else:
                self._attention(block)
                self._norm(block + "attn_q_norm.weight", self._head_width)
                self._norm(block + "attn_k_norm.weight", self._head_width)

    def _qwen35(self, recurrent: list[bool]) -> None:
        (state, groups, heads), kernel = self._delta_sizes, 4
        self._file.add_feed_forward_length(self._forward_width)
        self._file.add_head_count_kv(self._kv_heads)
        self._file.add_array(
            "qwen35.rope.dimension_sections", [self._head_width // 8, self._head_width // 8, self._head_width // 8, 0]
        )
        self._file.add_uint32("qwen35.full_attention_interval", 4)
        self._states(kernel, state * heads, state, heads, groups)
        self._norm("output_norm.weight")
        for at, delta in enumerate(recurrent):
            block = f"blk.{at}."
            self._norm(block + "attn_norm.weight")
            self._forward(block, "post_attention_norm.weight")
            if not delta:
                self._attention(block, queries=2)
                self._norm(block + "attn_q_norm.weight", self._head_width)
                self._norm(block + "attn_k_norm.weight", self._head_width)
                continue
            convolved = 2 * state * groups + state * heads
            self._matrix(block + "attn_qkv.weight", convolved, self._width)
            self._matrix(block + "attn_gate.weight", state * heads, self._width)
            self._floats(block + "ssm_conv1d.weight", convolved, kernel)
            self._floats(block + "ssm_dt.bias", heads, value=0.5)
            self._floats(block + "ssm_a", heads, value=-1.0)
            self._matrix(block + "ssm_beta.weight", heads, self._width)
            self._matrix(block + "ssm_alpha.weight", heads, self._width)
            self._norm(block + "ssm_norm.weight", state)
            self._matrix(block + "ssm_out.weight", self._width, state * heads)
        if self._heads:
            self._head(f"blk.{self._layers}.")

    def _head(self, block: str) -> None:
        clear = self._heads == "clear"
        self._file.add_uint32("qwen35.nextn_predict_layers", 1)
        self._norm(block + "attn_norm.weight")
        self._forward(block, "post_attention_norm.weight", silent=clear)
        self._attention(block, queries=2, silent=clear)
        self._norm(block + "attn_q_norm.weight", self._head_width)
        self._norm(block + "attn_k_norm.weight", self._head_width)
        both = np.concatenate([np.zeros((self._width, self._width)), np.eye(self._width)], axis=1).astype(
            np.float32
        )  # token, state
        self._matrix(block + "nextn.eh_proj.weight", self._width, 2 * self._width, both if clear else None)
        self._norm(block + "nextn.enorm.weight")
        self._floats(block + "nextn.hnorm.weight", self._width, value=np.nan if self._heads == "broken" else 1.0)

    def _falcon(self, recurrent: list[bool]) -> None:
        sizes = self._mamba_sizes
        self._file.add_feed_forward_length(self._forward_width)
        self._file.add_head_count_kv(self._kv_heads)
        self._states(*sizes)
        self._norm("output_norm.weight")
        for at in range(len(recurrent)):
            block = f"blk.{at}."
            self._norm(block + "attn_norm.weight")
            self._forward(block, "ffn_norm")
            self._attention(block)
            self._mamba(block, *sizes)

    def _granite(self, recurrent: list[bool]) -> None:
        sizes = self._mamba_sizes
        self._file.add_feed_forward_length(self._forward_width)
        self._file.add_array(
            "granitehybrid.attention.head_count_kv", [0 if each else self._kv_heads for each in recurrent]
        )
        self._states(*sizes)
        self._norm("output_norm.weight")
        for at, mamba in enumerate(recurrent):
            block = f"blk.{at}."
            self._norm(block + "attn_norm.weight")
            self._mamba(block, *sizes) if mamba else self._attention(block)
            self._forward(block)

    def _nemotron(self, recurrent: list[bool]) -> None:
        """Each layer is one of three: Mamba-2, attention, feed forward."""
        sizes = self._mamba_sizes
        kinds = ("mamba", "forward", "attention", "mamba") * (self._layers // 4)
        self._file.add_array(
            "nemotron_h.feed_forward_length", [self._forward_width if kind == "forward" else 0 for kind in kinds]
        )
        self._file.add_array(
            "nemotron_h.attention.head_count_kv", [self._kv_heads if kind == "attention" else 0 for kind in kinds]
        )
        self._file.add_layer_norm_eps(1e-5)
        self._states(*sizes)
        self._norm("output_norm.weight")
        for at, kind in enumerate(kinds):
            block = f"blk.{at}."
            self._norm(block + "attn_norm.weight")
            if kind == "mamba":
                self._mamba(block, *sizes)
            elif kind == "attention":
                self._attention(block)
            else:
                self._matrix(block + "ffn_up.weight", self._forward_width, self._width)
                self._matrix(block + "ffn_down.weight", self._width, self._forward_width)

    def _llama(self, recurrent: list[bool]) -> None:
        self._file.add_feed_forward_length(self._forward_width)
        self._file.add_head_count_kv(self._kv_heads)
        self._norm("output_norm.weight")
        for at in range(len(recurrent)):
            block = f"blk.{at}."
            self._norm(block + "attn_norm.weight")
            self._attention(block)
            self._forward(block)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("architecture", choices=ARCHITECTURES)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=28)
    options = parser.parse_args()
    write(options.out, options.architecture, width=options.width, layers=options.layers)


if __name__ == "__main__":
    main()
