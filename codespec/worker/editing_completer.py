"""A completer and a model of next edits as one worker of the decode thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codespec.worker.edit_model import EditModel
    from codespec.worker.jobs import Completes


class EditingCompleter:
    """Completes with one model and predicts next edits with another; see ``CompletesAndEdits``.

    Attributes:
        completer: that completes.
    """

    def __init__(self, completer: Completes, edits: EditModel) -> None:
        self.completer, self._edits = completer, edits
        self.complete, self.prefill = completer.complete, completer.prefill
        self.learn, self.accepted, self.forget = completer.learn, completer.accepted, completer.forget
        self.hasten = completer.hasten
        self.next_edit = edits.next_edit

    @property
    def reading(self) -> bool:
        """Whether either reads a prompt."""
        return self.completer.reading or self._edits.reading

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Let both use the time."""
        return self.completer.idle(go_on) and go_on() and self._edits.idle(go_on)

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """The completer's, and ``edits``: that of the model of next edits."""
        return {**self.completer.status(languages), "edits": self._edits.status()}

    def abort(self) -> None:
        """Stop what runs; from any thread."""
        self.completer.abort()
        self._edits.abort()

    def close(self) -> None:
        """Free both."""
        self._edits.close()
        self.completer.close()
