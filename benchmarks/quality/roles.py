"""Whether what follows the cursor is still what it was: code, comment or string, by Pygments' lexers."""

from __future__ import annotations

from collections.abc import Callable

from codespec.extras import remedy
from codespec.languages import Language
from codespec.protocols import CodespecError

WINDOW = 1000
"""Characters behind the cursor that are looked at."""
_NAMES = {"shellscript": "bash", "typescriptreact": "tsx", "javascriptreact": "jsx", "jsonc": "json"}

Roles = Callable[[str], str]
"""A text to a text of the same length: ``c``, ``s`` or ``x`` for every character of a comment, a string or code."""


def roles_of(language: Language) -> Roles:
    """The roles of every character of a text in a language.

    Raises:
        CodespecError: Pygments is missing, or does not know the language.
    """
    try:
        from pygments import lexers, token, util
    except ImportError:
        raise CodespecError(f"Pygments is missing: {remedy('judges')}") from None
    try:
        lexer = lexers.get_lexer_by_name(_NAMES.get(language.id, language.id), stripnl=False, ensurenl=False)
    except util.ClassNotFound:
        raise CodespecError(f"Pygments does not know {language.id}") from None

    def roles(text: str) -> str:
        parts = []
        for kind, value in lexer.get_tokens(text):
            # Lines of C's preprocessor are code.
            comment = kind in token.Comment and kind not in token.Comment.Preproc
            string = kind in token.String and kind not in token.String.Regex
            parts.append(("c" if comment else "s" if string else "x") * len(value))
        return "".join(parts)

    return roles


def changed(roles: Roles, before: str, text: str, after: str) -> bool:
    """Whether ``text`` between ``before`` and ``after`` makes of the next line of these, or of what else follows in the
    window, something else than it was; or of the word that begins there a part of another one."""
    window = after[:WINDOW]
    was = roles(before + after)[len(before) :][: len(window)]
    now = roles(before + text + after)[len(before + text) :][: len(window)]
    joined = (before[-1:] + text)[-1:] + after[:1]
    if was[:1] == "x" and _is_word(joined) and not _is_word(before[-1:] + after[:1]):
        return True
    return any(one != other for one, other, sign in zip(was, now, window, strict=True) if not sign.isspace())


def _is_word(joined: str) -> bool:
    return len(joined) == 2 and all(each.isalnum() or each == "_" for each in joined)
