"""The grammar for the version of a language that a project supports."""

from __future__ import annotations

from codespec.languages import Language, load


def grammar_for(language: Language, path: str, workspace: str) -> str:
    """The shipped grammar of a language, for the oldest version that the file's project supports.

    Args:
        path, workspace: file names or URIs, may be empty: nothing is then known of the version.

    Returns:
        Its name; empty where the language has none.
    """
    if not language.grammar_versions:
        return language.grammar
    oldest: tuple[int, int] | None = load(language.version)(path, workspace)
    fitting = [each for each in language.grammar_versions if oldest is not None and each <= oldest]
    return language.grammar + (".".join(map(str, max(fitting))) if fitting else "")
