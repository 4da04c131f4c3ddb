"""Imports go one way, and foreign libraries have one home each."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "codespec"

# From the bottom up; what shares a row may import each other. Folders of languages, ``languages/``, are above the rows
# that name them.
LAYERS = [
    {
        "cache_files",
        "child_progress",
        "crash",
        "errors",
        "exit_codes",
        "extras",
        "files",
        "hosts",
        "line_ends",
        "paths",
        "patience",
        "privacy",
        "recent",
        "terminal",
        "text_difference",
    },
    {"protocols"},
    {"languages"},
    {"early_errors"},
    {"syntax", "languages/"},
    {"llama"},
    {"grammar", "models"},
    {"draft"},
    {"speculative"},
    {"engine"},
    {"remote"},
    {"config", "config_rules", "config_sections"},
    {"completion"},
    {"edits"},
    {"worker"},
    {"daemon"},
    {"http", "lsp", "train"},
    {"cli"},
    {"__main__", "hatch_build"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MAY_READ_CONFIG = {"cli", "http", "lsp", "completion", "daemon", "config"}
HOMES = {
    "llama_cpp": {"llama"},
    "pygls": {"lsp"},
    "lsprotocol": {"lsp"},
    "lark": {"grammar"},
    "torch": {"train"},
    "pathspec": {"privacy"},
    "tree_sitter": {"syntax", "languages/"},
    "tokenizers": {"models", "train"},
    "huggingface_hub": {"models"},
    "tomlkit": {"models"},
    "anyio": {"remote"},
    "httpx": {"remote"},
    "h2": {"remote"},
    "keyring": {"remote"},
    "h11": {"http"},
    "jinja2": {"http"},
    "prometheus_client": {"http"},
    "starlette": {"http"},
    "uvicorn": {"http"},
    "uvloop": {"http"},
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
    first, *more = path.relative_to(PACKAGE).parts
    return "languages/" if first == "languages" and len(more) > 1 else first.removesuffix(".py")


# codespec/__init__.py is the public interface and names the parts without importing them.
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports(path):
    own = part_of(path)
    assert own in LEVEL, f"{own} is not in the table of layers"
    for name in imports_of(path):
        parts = name.split(".")
        assert parts[0] not in ("benchmarks", "tests"), f"{path.name} imports {name}, which is not in the package"
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
            if own == "speculative" and parts[1] == "draft":
                assert parts[2] in ("sequence", "draft_length"), f"{path.name} sees a draft"


def test_every_layer_exists():
    assert {part_of(path) for path in FILES} == set(LEVEL)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def modules_of(path: Path) -> set[str]:
    """The modules that a file imports, types alone included."""
    known = {module_of(each) for each in FILES}
    found = set()
    for name in imports_of(path):
        while name and name not in known:
            name = name.rpartition(".")[0]
        found.add(name)
    return found - {""}


def test_there_are_no_circles():
    imports = {module_of(path): modules_of(path) for path in FILES}
    done: set[str] = set()
    while len(done) < len(imports):
        free = {name for name, needed in imports.items() if name not in done and needed - {name} <= done}
        assert free, f"imports in a circle: {sorted(set(imports) - done)}"
        done |= free
