"""The one thread that uses the models: it decodes for one request at a time, and frees them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

from codespec.worker.jobs import QUESTION, Job, Priority, Task, Worker
from codespec.worker.malloc_trim import Trimmer
from codespec.worker.times import Times

if TYPE_CHECKING:
    from codespec.protocols import Cancel

logger = logging.getLogger(__name__)

MOST_TASKS = 64
"""Tasks that wait; of more, the oldest are dropped."""

CLOSING_S = 0.3
"""Seconds for tasks that still wait when the thread ends."""

IDLE_S = 1.0
"""Seconds without a request before the models are measured."""


class DecodeThread:
    """Runs requests one after the other, at most one per document: a newer request replaces the older one. Whatever
    fails, the next one is run: a panic of native code is a ``BaseException``.

    When no request has come for a while it calls ``Worker.idle``, until one comes. Every method may be called from any
    thread and returns at once, except ``close``.

    Args:
        worker: handed to all work; freed by ``close``.
        idle_s: seconds without a request before that.
        priority: of this process, where that is its own: it is told when somebody waits, and asked before what nobody
            waits for.
    """

    def __init__(self, worker: Worker, idle_s: float = IDLE_S, priority: Priority | None = None) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, Job] = {}
        self._tasks: dict[str, Task] = {}
        self._running: Job | None = None
        self._worker = worker
        self._closing = False
        self._idle_s = idle_s
        self._priority = priority
        self._idle_work = True  # may be left for when nobody waits
        self._idling = False
        # Times from the stop of a running job until the thread is free, by what the job did.
        self._stopping = {"decode": Times(), "prefill": Times()}
        # A daemon, because a model that is being loaded cannot be interrupted and must not hold up the exit.
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)
        self._thread.start()

    def submit(
        self,
        document: str,
        work: Callable[[Any, Cancel], Any],
        ahead: bool = False,
        prefill: bool = False,
        gives_way: int = 0,
    ) -> Job:
        """Have work done. An older job of the same document stops and resolves to None.

        Args:
            work: called in the decode thread with the worker and a flag that is set once nobody wants the result any
                more.
            ahead: nobody waits for it yet. Such a job runs only if nothing else is to be done, and is stopped by
                whatever comes, of any document; a newer one takes its place.
            prefill: it only reads a prompt, a step of which is always finished.
            gives_way: somebody waits for it, but requests that give way less go first, and one that comes stops it;
                see ``Job``.
        """
        job = Job(document, work, ahead, prefill, gives_way)
        with self._changed:
            if not ahead:
                self._somebody_waits()
            jobs = [*self._waiting.values(), *([self._running] if self._running is not None else [])]
            if self._closing or (ahead and not all(map(_may_be_replaced, jobs))):
                job.resolve(None)
                return job
            if self._running is not None and self._stops(job, self._running):
                if not self._running.cancel.is_set():
                    self._running.overtaken = self._running.gives_way > job.gives_way
                self._stop(self._running)
            for waiting in [each for each in self._waiting.values() if each.ahead]:
                self._stop(self._waiting.pop(waiting.document))
            # Taking the older job's place in the dict keeps its turn: busy documents neither starve nor jump the queue.
            older = self._waiting.get(document)
            self._waiting[document] = job
            if older is not None:
                self._stop(older)
            self._stop_idling()
            self._changed.notify()
        return job

    @staticmethod
    def _stops(job: Job, running: Job) -> bool:
        goes_first = running.gives_way > job.gives_way != QUESTION
        return running.ahead or running.document == job.document or goes_first

    def later(self, key: str, work: Callable[[Any], None]) -> Future[None]:
        """Call ``work`` with the worker once no request waits; a newer task of the same key replaces it.

        Keep it short: a request that comes meanwhile waits for it.
        """
        task = Task(work)
        with self._changed:
            if self._closing:
                task.end()
                return task.future
            older = self._tasks.pop(key, None)
            if older is None and len(self._tasks) >= MOST_TASKS:
                older = self._tasks.pop(next(iter(self._tasks)))
            if older is not None:
                older.end()
            self._tasks[key] = task
            self._stop_idling()
            self._changed.notify()
        return task.future

    def status(self) -> dict[str, Any]:
        """Milliseconds from a cancellation to its effect, by what was stopped."""
        return {f"stop_{what}_ms": times.figures() for what, times in self._stopping.items()}

    def cancel(self, job: Job) -> None:
        """Stop a job whose answer nobody wants any more, within one target call."""
        with self._changed:
            if self._waiting.get(job.document) is job:
                del self._waiting[job.document]
            self._stop(job)

    def cancel_document(self, document: str) -> None:
        """Stop whatever runs or waits for a document."""
        with self._changed:
            for job in (self._running, self._waiting.pop(document, None)):
                if job is not None and job.document == document:
                    self._stop(job)

    def hasten(self, job: Job) -> None:
        """Somebody waits for a job that was submitted ahead."""
        with self._changed:
            self._somebody_waits()
            job.ahead = False

    def close(self, timeout: float) -> bool:
        """Stop everything and free the models; whether that was done within ``timeout`` seconds."""
        with self._changed:
            self._closing = True
            for job in self._waiting.values():
                job.resolve(None)
            self._waiting.clear()
            self._stop(self._running)
            self._stop_idling()
            self._changed.notify()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _stop(self, job: Job | None) -> None:
        """Lock held, so that the abort cannot hit the job after this one."""
        if job is None:
            return
        if not job.stopped:
            job.stopped = perf_counter()
            job.reading = self._worker.reading
        job.cancel.set()
        # The next request mostly has the same prompt: a prefill ends after its step, not within.
        if job is self._running and not job.prefill:
            self._worker.abort()
        job.resolve(None)

    def _stop_idling(self) -> None:
        """Lock held, so that the abort cannot hit a job."""
        if self._idling:
            self._worker.abort()

    def _ready(self) -> bool:
        return self._closing or bool(self._waiting or self._tasks)

    def _run(self) -> None:
        heap = Trimmer()
        while True:
            task = None
            with self._changed:
                found = self._changed.wait_for(self._ready, self._idle_s if self._idle_work else None)
                if self._closing:
                    break
                self._idling = not found
                if self._waiting:
                    self._running = self._waiting.pop(self._next())
                elif found:
                    task = self._tasks.pop(next(iter(self._tasks)))
            if not found:
                self._idle()
            elif task is not None:
                task.run(self._worker)
            else:
                self._decode()
            if not self._ready():
                heap.trim()
        self._finish_tasks()
        try:
            self._worker.close()
        except Exception:
            logger.exception("the models could not be freed")

    def _next(self) -> str:
        """Lock held, something waits: the document of the job that has its turn."""
        return min(self._waiting, key=lambda document: self._waiting[document].gives_way)  # the first of equals

    def _finish_tasks(self) -> None:
        """Run the waiting tasks, the latest first, as long as there is time: an accepted completion is to be learnt."""
        end = monotonic() + CLOSING_S
        for task in reversed(self._tasks.values()):
            if monotonic() < end:
                task.run(self._worker)
            task.end()
        self._tasks.clear()

    def _somebody_waits(self) -> None:
        """Lock held, so that nothing lowers the priority after it."""
        if self._priority is not None:
            self._priority.somebody_waits()

    def _may_work_ahead(self) -> bool:
        """Lock held. A request that is there by now has raised the priority, and comes first."""
        return self._priority is None or self._priority.may_work_ahead()

    def _idle(self) -> None:
        done = True
        try:
            with self._changed:
                done = begins = self._ready() or self._may_work_ahead()
            if begins:
                done = self._worker.idle(lambda: not self._ready())
        except BaseException:
            logger.exception("what is done while nobody waits has failed")
        with self._changed:
            self._idling = False
            self._somebody_waits()  # for the next request, which is received and read at this priority
        self._idle_work = not done

    def _decode(self) -> None:
        job, result = self._running, None
        assert job is not None
        try:
            with self._changed:
                begins = not job.ahead or job.cancel.is_set() or self._may_work_ahead()
            if begins:
                result = job.work(self._worker, job.cancel)
        except BaseException as error:
            # An abort may surface as an exception: then it is no news.
            if not job.cancel.is_set():
                job.fail(error)
        with self._changed:
            self._running = None
            if job.stopped:
                what = "prefill" if job.prefill or job.reading else "decode"
                self._stopping[what].add((perf_counter() - job.stopped) * 1e3)
        self._idle_work = True  # another draft may have been loaded
        job.resolve(None if job.cancel.is_set() or job.prefill else result)


def _may_be_replaced(job: Job) -> bool:
    """Whether work ahead may begin in spite of this job."""
    return job.ahead or (job.gives_way > 0 and job.cancel.is_set())
