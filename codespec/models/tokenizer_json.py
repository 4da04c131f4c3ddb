"""The vocabulary of a ``tokenizer.json`` as a GGUF file without weights, which everything else here takes.

llama.cpp cuts texts by code of its own, chosen by a name; ``tokenizer.json`` has a regular expression instead. The name
is found by trial: the one with which llama.cpp makes the same tokens of a text as the ``tokenizers`` library.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codespec.cache_files import remove_oldest
from codespec.extras import remedy
from codespec.files import read_bytes
from codespec.llama.model import Model
from codespec.paths import cache_folder, make_private
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FILE = "tokenizer.json"
LARGEST = 128 << 20
"""Bytes of such a file; the largest known have 35 MB."""
MOST_KEPT = 8
MOST_TOKENS = 1 << 22
ORDER_KEY = "codespec.fim.order"
"""The key in a GGUF file, and in ``tokenizer_config.json``."""
_VERSION = b"2"

PRE_TOKENIZERS = (
    "qwen2",
    "llama-bpe",
    "starcoder",
    "gpt-2",
    "deepseek-coder",
    "deepseek-v3",
    "deepseek-llm",
    "tekken",
    "gpt-4o",
    "qwen35",
    "glm4",
    "chatglm-bpe",
    "smollm",
    "refact",
    "codeshell",
    "command-r",
    "seed-coder",
    "kimi-k2",
    "minimax-m2",
    "falcon",
    "mpt",
    "stablelm2",
    "olmo",
    "dbrx",
    "bailingmoe",
    "hunyuan",
    "exaone",
    "exaone4",
    "superbpe",
    "bloom",
)
"""llama.cpp's names (``llama-vocab.cpp``), those of code models first."""

TRIAL = """def fibonacci(n: int) -> list[int]:
    \"\"\"The first numbers isn't WE'LL I'd they've it's.\"\"\"
    a, b = 0, 1234567890123
\twhile (x := 3.14e-10) != 0xFF:  /* größer */ 日本語のテキスト 🦙 नमस्ते שלום
        return {"key": [None, True], 'other': f"{a:>10}\\\\n"}   \n\n\n\n  \t \n
#include <stdio.h>\r\nint main(void){for(int i=0;i<10;++i)printf("%d\\n",i);}\r\n
class A {\n    \n\t\n}
fn main<T: Into<String>>(v: &mut Vec<u8>) -> Result<(), Box<dyn Error>> { println!("{:?}", v); }
const fetchAll = async (urls) => await Promise.all(urls.map(u => fetch(u).then(r => r.json())));
SELECT id, COUNT(*) FROM users WHERE created_at >= '2024-01-01' AND x_1Y2 <> 007 GROUP BY id;;;
// camelCaseHTTPServer snake_case_2 SCREAMING_CASE ÀÉÎ naïve Straße 12,345.67 1\u00a02 ½ ² ───── <<<=>>> ~~~~
                                                                      deep\t\t\t\ttabs    and  spaces
"""
"""Text in which pre-tokenizers differ: contractions, digits, runs of space, scripts, symbols. Its characters are
composed: llama.cpp does not normalize a text as some libraries do."""

ENDS = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "</s>",
    "<｜end▁of▁sentence｜>",
    "<|end_of_sentence|>",
    "<|im_end|>",
    "[eos]",
)
"""Names of the token that ends a text, asked for where no file beside says which it is."""

_log = logging.getLogger(__name__)


def vocabulary_file(path: Path) -> Path:
    """The GGUF file that stands for a vocabulary: ``path`` itself, or one made of a ``tokenizer.json`` and kept.

    Args:
        path: a GGUF file, a ``tokenizer.json``, or the folder of one.

    Raises:
        CodespecError: it cannot be read, it is of a kind that llama.cpp does not have, packages are missing, or the
            cache folder cannot be written.
    """
    if path.is_dir():
        path = path / FILE
    if path.suffix.lower() != ".json":
        return path
    data = read_bytes(path, LARGEST)
    about = _Beside.of(path.parent)
    folder = cache_folder() / "vocabularies"
    key = hashlib.sha256(b"\0".join((_VERSION, repr(about).encode(), data))).hexdigest()
    made = folder / f"{key[:40]}.gguf"
    if made.is_file():
        with suppress(OSError):  # somebody else's, perhaps, who is to keep it as well
            made.touch()
        return made
    try:
        make_private(folder)
        _convert(path, data, about, made)
        remove_oldest(folder, ".gguf", MOST_KEPT)
    except OSError as error:
        raise CodespecError(f"{folder}: cannot be written ({error}); let CODESPEC_CACHE name another folder") from error
    return made


@dataclass(frozen=True)
class _Beside:
    """What other files of a model's folder say of its vocabulary.

    Attributes:
        name: of the model, by which its family may be known.
        ends: names or numbers of the tokens that end a text, the most telling first.
        size: tokens, padding included; 0: they do not say.
        order: of the parts of a fill-in-the-middle prompt, see ``ORDER_KEY``; empty: they do not say.
    """

    name: str
    ends: tuple[str | int, ...]
    size: int
    order: str

    @classmethod
    def of(cls, folder: Path) -> _Beside:
        config = _object(folder / "config.json")
        found: list[Any] = []
        for about in (config, _object(folder / "generation_config.json")):
            ids = about.get("eos_token_id")
            found += ids if isinstance(ids, list) else [ids]
        about_tokens = _object(folder / "tokenizer_config.json")
        token = about_tokens.get("eos_token")
        found.insert(0, token.get("content") if isinstance(token, dict) else token)
        ends = tuple(each for each in found if isinstance(each, str | int) and not isinstance(each, bool))
        size = config.get("vocab_size")
        return cls(
            _text(config.get("_name_or_path")) or folder.resolve().name,
            ends,
            size if isinstance(size, int) and 0 < size < MOST_TOKENS else 0,
            _text(about_tokens.get(ORDER_KEY)),
        )


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


def _object(path: Path) -> Mapping[str, Any]:
    """The object of a JSON file; empty where it is missing or something else."""
    try:
        found = json.loads(read_bytes(path, 1 << 22))
    except (CodespecError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _convert(path: Path, data: bytes, about: _Beside, made: Path) -> None:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise CodespecError(
            f"{path}: a {FILE} needs more packages ({error}): {remedy('remote')}; or name a GGUF file"
        ) from error
    try:
        whole = json.loads(data)
        judge = Tokenizer.from_str(data.decode())
        judge.no_truncation()
        judge.no_padding()
        table = _Table.of(path, whole, about)
        beginning = _beginning(judge)
    except (CodespecError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # that library raises nothing more precise, and panics are no Exception
        raise CodespecError(f"{path}: no {FILE} that can be read ({_line(error)})") from error
    temporary = made.with_suffix(f".{os.getpid()}.tmp")
    try:
        table.write(temporary, _pre_tokenizer(path, table, judge, temporary), about, beginning)
        temporary.replace(made)
    finally:
        temporary.unlink(missing_ok=True)


def _pre_tokenizer(path: Path, table: _Table, judge: Tokenizer, temporary: Path) -> str:
    """llama.cpp's name for how the vocabulary cuts texts.

    Raises:
        CodespecError: it has none.
    """
    small = table.within(TRIAL)
    expected = [table.tokens[token] for token in judge.encode(TRIAL, add_special_tokens=False).ids]
    for name in _likely_first(str(judge.pre_tokenizer)):
        small.write(temporary, name, _Beside("", (), 0, ""), None)
        with Model(temporary, vocabulary_only=True) as model:
            found = [small.tokens[token] for token in model.vocabulary.tokenize(TRIAL)]
        if found == expected:
            return name
        _log.debug("%s: not %s", path, name)
    raise CodespecError(
        f"{path}: llama.cpp has nothing that makes the same tokens of a text; name a GGUF file of this model"
    )


def _likely_first(pre_tokenizer: str) -> Iterator[str]:
    """llama.cpp's names, beginning with those that the regular expression looks like."""
    groups = r"\p{N}{1,3}" in pre_tokenizer
    cuts = r"(?i:'s|'t" in pre_tokenizer
    if r"\p{M}" in pre_tokenizer:
        first = "qwen35"
    elif r"\p{N}{1}|" in pre_tokenizer:
        first = "seed-coder"
    else:
        first = (
            "llama-bpe" if groups and cuts else "qwen2" if cuts else "starcoder" if "Digits" in pre_tokenizer else ""
        )
    yield from sorted(PRE_TOKENIZERS, key=lambda name: name != first)


def _beginning(judge: Tokenizer) -> int | None:
    """The token that is put before every text."""
    with_it, without = judge.encode("a").ids, judge.encode("a", add_special_tokens=False).ids
    return int(with_it[0]) if with_it[1 : len(without) + 1] == without else None


@dataclass(frozen=True)
class _Table:
    """The tokens of a byte-level BPE vocabulary.

    Attributes:
        kinds: enum llama_token_type.
    """

    tokens: list[str]
    kinds: list[int]
    merges: list[str]
    ends: list[int]

    @classmethod
    def of(cls, path: Path, whole: Mapping[str, Any], about: _Beside) -> _Table:
        from gguf import TokenType

        model = whole["model"]
        plain = model.get("type", "BPE") == "BPE" and model["merges"] and not model.get("byte_fallback")
        if not plain or '"ByteLevel"' not in json.dumps(whole):
            raise CodespecError(
                f"{path}: not a byte-level BPE, the only kind that codespec reads from a {FILE}; "
                "name a GGUF file of this model"
            )
        ids = {token: int(index) for token, index in model["vocab"].items()}
        kinds = dict.fromkeys(ids.values(), int(TokenType.NORMAL))
        for added in whole.get("added_tokens") or ():
            ids[added["content"]] = int(added["id"])
            kinds[int(added["id"])] = int(TokenType.CONTROL if added["special"] else TokenType.USER_DEFINED)
        size = max(about.size, 1 + max(kinds))
        if size > MOST_TOKENS or min(kinds) < 0 or len(ids) != len(kinds) or "" in ids:
            raise CodespecError(f"{path}: its tokens have no names and numbers of their own; fetch it again")
        tokens = [f"[PAD{token}]" for token in range(size)]
        for token, index in ids.items():
            tokens[index] = token
        merges = [each if isinstance(each, str) else " ".join(each) for each in model["merges"]]
        return cls(
            tokens,
            [kinds.get(token, int(TokenType.UNUSED)) for token in range(size)],
            merges,
            _ends(path, ids, about.ends, size),
        )

    def within(self, text: str) -> _Table:
        """Those tokens alone that can come of a text, however it is cut, and the first end."""
        from gguf import TokenType
        from tokenizers.pre_tokenizers import ByteLevel

        [(spelt, _)] = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
        kept = [
            token
            for token, (name, kind) in enumerate(zip(self.tokens, self.kinds, strict=True))
            if (kind == TokenType.NORMAL and (len(name) == 1 or name in spelt))
            or (kind == TokenType.USER_DEFINED and name in text)
        ]
        if self.ends[0] not in kept:
            kept.append(self.ends[0])
        names = {self.tokens[token] for token in kept}
        merges = [each for each in self.merges if names.issuperset((*each.split(" "), each.replace(" ", "")))]
        return _Table(
            [self.tokens[token] for token in kept],
            [self.kinds[token] for token in kept],
            merges,
            [kept.index(self.ends[0])],
        )

    def write(self, path: Path, pre: str, about: _Beside, beginning: int | None) -> None:
        """Write a GGUF file of these tokens; ``pre`` is llama.cpp's name for how it cuts texts."""
        from gguf import GGUFWriter

        writer = GGUFWriter(str(path), "llama")
        writer.add_name(about.name)
        if about.order:
            writer.add_string(ORDER_KEY, about.order)
        writer.add_context_length(64)
        writer.add_embedding_length(8)
        writer.add_block_count(1)
        writer.add_feed_forward_length(8)
        writer.add_head_count(1)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.kinds)
        writer.add_token_merges(self.merges)
        writer.add_eos_token_id(self.ends[0])
        if len(self.ends) > 1:
            writer.add_eot_token_id(self.ends[1])
        writer.add_bos_token_id(self.ends[0] if beginning is None else beginning)
        writer.add_add_bos_token(beginning is not None)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def _ends(path: Path, ids: Mapping[str, int], named: tuple[str | int, ...], size: int) -> list[int]:
    """The tokens that end a text, each once."""
    found = [ids.get(each, -1) if isinstance(each, str) else each for each in named]
    found = [each for each in dict.fromkeys(found) if 0 <= each < size]
    found = found or [ids[name] for name in ENDS if name in ids][:1]
    if not found:
        raise CodespecError(
            f"{path}: nothing says which token ends a text; put the model's tokenizer_config.json or config.json "
            "beside it, or name a GGUF file"
        )
    return found


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
