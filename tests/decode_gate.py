"""Workers for the decode thread whose requests take until a test lets them through."""

from __future__ import annotations

import threading

WAIT_S = 60.0


class Gate:
    """A completer whose requests take until they are let through or stopped."""

    reading = False

    def __init__(self) -> None:
        self.order: list[str] = []
        self.begun = threading.Semaphore(0)
        self.through = threading.Semaphore(0)
        self.aborts = 0
        self.closed = threading.Event()

    def complete(self, request, cancel):
        self.order.append(request)
        self.begun.release()
        while not self.through.acquire(timeout=0.005):
            if cancel.is_set():
                return []
        return [f"{request} done"]

    def idle(self, go_on):
        return True

    def abort(self):
        self.aborts += 1

    def close(self):
        self.closed.set()


class Idler(Gate):
    """A completer that has ``steps`` of 5 ms to do while nobody waits; ``abort`` ends the step that runs."""

    def __init__(self, steps: float) -> None:
        super().__init__()
        self.steps = steps
        self.idling = threading.Semaphore(0)
        self.calls = 0
        self.aborted = threading.Event()
        self.finished = threading.Event()

    def idle(self, go_on):
        self.calls += 1
        self.aborted.clear()
        self.idling.release()
        while self.steps > 0:
            if not go_on() or self.aborted.wait(0.005):
                return False
            self.steps -= 1
        self.finished.set()
        return True

    def abort(self):
        super().abort()
        self.aborted.set()


def submit(thread, document, request, **more):
    return thread.submit(document, lambda completer, cancel: completer.complete(request, cancel), **more)
