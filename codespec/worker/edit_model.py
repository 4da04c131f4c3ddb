"""The model of next edits: an engine of its own, loaded at the first request in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from codespec.protocols import Aborted
from codespec.worker.jobs import as_exception

if TYPE_CHECKING:
    from codespec.edits.predictor import EditPredictor
    from codespec.edits.request import EditOffer, EditRequest
    from codespec.engine.local import LocalEngine
    from codespec.protocols import Cancel

logger = logging.getLogger(__name__)

LOOK_S = 0.01
"""Seconds between two looks at whether a request that waits for the model is still wanted."""
_MIB = 1 << 20


class EditModel:
    """Predicts next edits. Requests from one thread; ``abort``, ``reading`` and ``status`` from any.

    While the model is loaded, a request for it can be stopped: completions need not wait.

    Args:
        load: called in a thread of its own, again after it has failed.
    """

    def __init__(self, load: Callable[[], LocalEngine]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._loading: Future[tuple[LocalEngine, EditPredictor]] | None = None
        self._closed = False
        self._predictions = 0
        self._why = ""

    def next_edit(self, request: EditRequest, cancel: Cancel) -> list[EditOffer] | None:
        """At most one offer; None where the request was stopped.

        Raises:
            CodespecError: the model cannot be loaded.
        """
        loaded = self._wait_for_it(cancel)
        if loaded is None:
            return None
        predictor = loaded[1]
        try:
            offer = predictor.predict(request, cancel)
        except Aborted:
            return None
        if cancel.is_set():
            return None
        self._predictions += 1
        self._why = "" if offer is not None else predictor.why
        return [offer] if offer is not None else []

    @property
    def reading(self) -> bool:
        """Whether a prompt is being read."""
        engine = self._engine()
        return engine is not None and engine.reading

    def abort(self) -> None:
        """Have the edit model write no more, within one of its passes; from any thread."""
        engine = self._engine()
        if engine is not None:
            engine.abort()

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Measure what passes of the model cost, once it is loaded; whether nothing is left to do."""
        engine = self._engine()
        return engine is None or engine.measure(go_on)

    def status(self) -> dict[str, Any]:
        """``state``: ``not loaded``, ``loading``, ``ready`` or ``failed``. Of a loaded model also its name, its own
        memory in MiB, how many edits it predicted, and why it predicted none the last time."""
        engine = self._engine()
        if engine is None:
            return {"state": self._state()}
        model = engine.model
        memory = model.size + model.kv_bytes_per_token * engine.context_length
        told = {"model": engine.name, "memory_mib": round(memory / _MIB, 1), "predictions": self._predictions}
        return {"state": "ready", **told, "why": self._why}

    def close(self) -> None:
        """Free the model; one that is still being loaded is freed then."""
        with self._lock:
            self._closed = True
            engine = self._engine()
        if engine is not None:
            engine.close()

    def _state(self) -> str:
        loading = self._loading
        if loading is None:
            return "not loaded"
        return "failed" if loading.done() else "loading"

    def _engine(self) -> LocalEngine | None:
        loading = self._loading
        if loading is None or not loading.done() or loading.exception() is not None:
            return None
        return loading.result()[0]

    def _wait_for_it(self, cancel: Cancel) -> tuple[LocalEngine, EditPredictor] | None:
        loading = self._loading
        if loading is None or (loading.done() and loading.exception() is not None):
            loading = self._loading = Future()
            try:
                threading.Thread(target=self._load_into, args=(loading,), name="edit model", daemon=True).start()
            except RuntimeError as error:  # no thread is to be had
                loading.set_exception(error)
        while not cancel.is_set():
            if wait([loading], LOOK_S).done:
                return loading.result()
        return None

    def _load_into(self, future: Future[tuple[LocalEngine, EditPredictor]]) -> None:
        engine = None
        try:
            from codespec.edits.predictor import EditPredictor  # loads native libraries: not before they are needed

            engine = self._load()
            loaded = engine, EditPredictor(engine)
        except BaseException as error:  # a panic of native code is no Exception
            future.set_exception(as_exception(error))
            if engine is not None:
                engine.close()
            return
        with self._lock:
            future.set_result(loaded)
            closed = self._closed
        if closed:
            engine.close()
