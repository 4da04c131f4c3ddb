"""``textDocument/completion``, for clients without inline completion: the same answers, as entries of a menu."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types

from codespec.lsp.handlers.inline_completion import find
from codespec.lsp.items import Cursor, accepting
from codespec.lsp.session import CodespecServer

if TYPE_CHECKING:
    from codespec.completion.request import Completion

_WORD = re.compile(r"\w*")
_LABEL = 80
"""Characters of an entry's label."""


def register_where_needed(server: CodespecServer, capabilities: types.ClientCapabilities) -> None:
    """Answer ``textDocument/completion``, unless the client has inline completions: it would get everything twice."""
    documents = capabilities.text_document
    if documents is not None and documents.inline_completion is not None:
        return
    if types.TEXT_DOCUMENT_COMPLETION not in server.protocol.fm.features:
        options = types.CompletionOptions(trigger_characters=[".", "(", "[", "=", ":", ",", " "])
        server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(completion)


async def completion(ls: CodespecServer, params: types.CompletionParams) -> types.CompletionList | None:
    """Complete at the cursor; None where that is not to be done, or a newer request has come."""
    answer = await find(ls, params.text_document.uri, params.position)
    if answer is None:
        return None
    found = enumerate(zip(answer.completions, answer.identifiers, strict=True))
    items = [to_entry(each, answer.cursor, name, index) for index, (each, name) in found]
    # Incomplete: with every key there may be more to say.
    return types.CompletionList(is_incomplete=True, items=items)


def to_entry(completion: Completion, cursor: Cursor, identifier: str, index: int) -> types.CompletionItem:
    """A completion as an entry of the menu, which replaces the word before the cursor."""
    word = _WORD.match(cursor.line[: cursor.column][::-1])  # read backwards
    start = cursor.column - (word.end() if word is not None else 0)
    text = cursor.line[start : cursor.column] + completion.text
    first = next((line for line in text.splitlines() if line.strip()), "").strip()
    several = "\n" in text.strip()
    return types.CompletionItem(
        label=first if len(first) <= _LABEL else first[: _LABEL - 1] + "…",
        kind=types.CompletionItemKind.Snippet if several else types.CompletionItemKind.Text,
        detail="codespec",
        documentation=text.strip("\n") if several or len(first) > _LABEL else None,
        preselect=index == 0,
        sort_text=f"{index:04}",
        filter_text=text.splitlines()[0] if text.splitlines() else text,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(cursor.span(start), text),
        command=accepting(identifier),
    )
