"""Imports go one way, and foreign libraries have one home each."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "codespec"

# From the bottom up; what shares a row may import each other.
LAYERS = [
    {
        "crash",
        "errors",
        "exit_codes",
        "files",
        "heap",
        "ignore",
        "places",
        "privacy",
        "privacy_names",
        "privacy_places",
        "privacy_tokens",
        "privacy_values",
        "terminal",
    },
    {"protocols"},
    {"languages", "option_values", "options", "options_measure", "show"},
    {"early_errors"},
    {"syntax", "syntax_literals", "syntax_names"},
    {"llama"},
    {"grammar", "models"},
    {"draft"},
    {"speculative"},
    {"config", "config_rules"},
    {"completion"},
    {"daemon"},
    {"lsp", "bench", "train", "doctor"},
    {"cli_bench", "cli_complete", "cli_grammar", "cli_learnt", "cli_models"},
    {"cli"},
    {"__main__", "hatch_build"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MAY_READ_CONFIG = {"cli", "cli_complete", "cli_models", "lsp", "bench", "completion", "daemon", "doctor", "config"}
HOMES = {
    "llama_cpp": {"llama"},
    "pygls": {"lsp"},
    "lsprotocol": {"lsp"},
    "lark": {"grammar"},
    "torch": {"train"},
    "pathspec": {"ignore"},
    "tree_sitter": {"syntax", "syntax_literals", "syntax_names", "bench"},
    "tokenizers": {"train"},
    "huggingface_hub": {"models"},
    "tomlkit": {"models"},
}


def imports_of(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


# codespec/__init__.py is the public interface and names the parts without importing them.
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports(path):
    own = part_of(path)
    assert own in LEVEL, f"{own} is not in the table of layers"
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] in HOMES:
            assert own in HOMES[parts[0]], f"{path.name} imports {parts[0]}"
        if parts[0] == "codespec" and len(parts) > 1 and parts[1] in LEVEL:
            assert parts[1] == own or LEVEL[parts[1]] < LEVEL[own] or LAYERS[LEVEL[own]] >= {parts[1], own}, (
                f"{path.name} imports {name} from above"
            )
            if parts[1] == "config":
                assert own in MAY_READ_CONFIG, f"{path.name} reads the settings"
            if own == "speculative" and parts[1] == "grammar":
                pytest.fail(f"{path.name} sees a grammar engine")


def test_every_layer_exists():
    assert {part_of(path) for path in FILES} == set(LEVEL)
