"""Documents whose lines end with carriage returns: models and the gate see line feeds alone."""

from __future__ import annotations

from dataclasses import replace

from codespec.edits.request import Edit, EditOffer, EditRequest, RecentEdit
from codespec.line_ends import CRLF, line_feeds


def with_line_feeds(request: EditRequest) -> EditRequest:
    """The same request of documents whose lines end with line feeds."""
    if "\r" not in request.text and not any("\r" in each.text for each in request.others):
        return request
    return replace(
        request,
        text=line_feeds(request.text),
        offset=request.offset - request.text.count(CRLF, 0, request.offset),
        recent=tuple(_edit(each) for each in request.recent),
        others=tuple(replace(each, text=line_feeds(each.text)) for each in request.others),
    )


def _edit(edit: RecentEdit) -> RecentEdit:
    before, after = line_feeds(edit.before), line_feeds(edit.after)
    above, below = line_feeds(edit.context_before), line_feeds(edit.context_after)
    return replace(edit, before=before, after=after, context_before=above, context_after=below)


def as_it_was(offer: EditOffer, request: EditRequest) -> EditOffer:
    """The offer for the documents of ``request`` as they are, with their line ends."""
    texts = {
        request.path: request.text,
        **{each.path: each.text for each in request.others if each.path != request.path},
    }
    text = texts[offer.path]
    if "\r" not in text:
        return offer
    return replace(offer, edits=tuple(_placed(each, text) for each in offer.edits))


def _placed(edit: Edit, text: str) -> Edit:
    start = _offset(text, edit.start)
    end = _offset(text, edit.end)
    own = CRLF if CRLF in text else "\n" if "\n" in text else "\r"
    return replace(edit, start=start, end=end, text=edit.text.replace("\n", own))


def _offset(text: str, offset: int) -> int:
    """Where a position of the text with line feeds is in ``text``."""
    at, seen = 0, 0
    for part in text.split(CRLF):
        if offset <= seen + len(part):
            return at + offset - seen
        seen += len(part) + 1
        at += len(part) + len(CRLF)
    return len(text)
