"""The one thread that owns the models: it loads them, decodes for one request at a time, and frees them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
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
    """Runs requests one after the other, at most one per document: a newer request replaces the older one.

    When no request has come for a while it calls ``Completer.idle``, until one comes. Every method may be called from
    any thread and returns at once, except ``close``.

    Args:
        idle_s: seconds without a request before that.
        priority: of this process, where that is its own: it is told when somebody waits, and asked before what nobody
            waits for.
    """

    def __init__(self, idle_s: float = IDLE_S, priority: Priority | None = None) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, Job] = {}
        self._tasks: dict[str, Task] = {}
        self._running: Job | None = None
        self._load: tuple[Callable[[], Worker], Callable[[Exception | None], None]] | None = None
        self._completer: Worker | None = None
        self._failed = False
        self._closing = False
        self._idle_s = idle_s
        self._priority = priority
        self._idle_work = False  # may be left for when nobody waits
        self._idling = False
        # Times from the stop of a running job until the thread is free, by what the job did.
        self._stopping = {"decode": Times(), "prefill": Times()}
        # A daemon, because a model that is being loaded cannot be interrupted and must not hold up the exit.
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)

    def load(self, load: Callable[[], Worker], done: Callable[[Exception | None], None]) -> None:
        """Replace the completer by what ``load`` returns; the requests that wait get the new one.

        Args:
            load: runs in the decode thread, after the old completer was closed.
            done: called there afterwards, with the exception of ``load``, or None.
        """
        with self._changed:
            if self._closing:
                return
            self._load = (load, done)
            self._failed = False
            self._somebody_waits()
            self._stop(self._running)
            self._stop_idling()
            if not self._thread.is_alive():
                self._thread.start()
            self._changed.notify()

    def submit(
        self,
        document: str,
        work: Callable[[Any, Cancel], Any],
        ahead: bool = False,
        prefill: bool = False,
        key: Any = None,
        gives_way: int = 0,
    ) -> Job:
        """Have work done. An older job of the same document stops and resolves to None, unless it was ahead and has the
        same key: then it goes on, as this one.

        Args:
            work: called in the decode thread with the worker that is loaded and a flag that is set once nobody wants
                the result any more.
            ahead: nobody waits for it yet. Such a job runs only if nothing else is to be done, and is stopped by
                whatever comes, of any document; a newer one takes its place.
            prefill: it only reads a prompt, a step of which is always finished.
            gives_way: somebody waits for it, but requests that give way less go first, and one that comes stops it;
                see ``Job``.
        """
        job = Job(document, work, ahead, prefill, key, gives_way)
        with self._changed:
            if not ahead:
                self._somebody_waits()
            same = self._ahead_of(job)
            if same is not None:
                if same.ahead and not ahead:
                    self._wait_for(same)
                return same
            jobs = [*self._waiting.values(), *([self._running] if self._running is not None else [])]
            if self._closing or self._failed or (ahead and not all(map(_may_be_replaced, jobs))):
                job.resolve(None)
                return job
            if self._running is not None and self._stops(job, self._running):
                if not self._running.cancel.is_set():
                    self._running.overtaken = self._running.gives_way > job.gives_way
                self._stop(self._running)
            for waiting in [each for each in self._waiting.values() if each.ahead]:
                self.give_up(waiting)
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

    def _ahead_of(self, job: Job) -> Job | None:
        """A job ahead with the document and key of ``job``, if one runs or waits."""
        if job.key is None:
            return None
        for each in (self._running, self._waiting.get(job.document)):
            goes_on = each is not None and each.ahead and not each.prefill and not each.cancel.is_set()
            if each is not None and goes_on and (each.document, each.key) == (job.document, job.key):
                return each
        return None

    def later(self, key: str, work: Callable[[Any], None]) -> Future[None]:
        """Call ``work`` with the completer once no request waits; a newer task of the same key replaces it.

        Keep it short: a request that comes meanwhile waits for it.
        """
        task = Task(work)
        with self._changed:
            if self._closing or self._failed:
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

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """``state`` (``loading``, ``ready``, ``failed``), how fast jobs stop, and the completer's own status."""
        with self._changed:
            completer = self._completer
        state = self.state
        stopping = {f"stop_{what}_ms": times.figures() for what, times in self._stopping.items()}
        return {"state": state, **stopping, **(completer.status(languages) if completer is not None else {})}

    @property
    def state(self) -> str:
        """``loading``, ``ready`` or ``failed``."""
        with self._changed:
            return "ready" if self._completer is not None else "failed" if self._failed else "loading"

    @property
    def accepts_jobs(self) -> bool:
        """Whether jobs are run. False after ``close`` and where the models could not be loaded: jobs then resolve to
        None at once."""
        with self._changed:
            return not (self._closing or self._failed)

    def cancel(self, job: Job) -> None:
        """Stop a job whose answer nobody wants any more, within one target call."""
        with self._changed:
            self._forget(job)
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
            self._wait_for(job)

    def give_up(self, job: Job) -> None:
        """Answer None if the job has not started yet."""
        with self._changed:
            if self._forget(job):
                self._stop(job)

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
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _forget(self, job: Job) -> bool:
        if self._waiting.get(job.document) is not job:
            return False
        del self._waiting[job.document]
        return True

    def _wait_for(self, job: Job) -> None:
        """Lock held, so that it is this job that runs."""
        job.ahead = False
        if job is self._running and self._completer is not None:
            self._completer.hasten(job.cancel)

    def _stop(self, job: Job | None) -> None:
        """Lock held, so that the abort cannot hit the job after this one."""
        if job is None:
            return
        if not job.stopped:
            job.stopped = perf_counter()
            job.reading = self._completer is not None and self._completer.reading
        job.cancel.set()
        # The next request mostly has the same prompt: a prefill ends after its step, not within.
        if job is self._running and self._completer is not None and not job.prefill:
            self._completer.abort()
        job.resolve(None)

    def _stop_idling(self) -> None:
        """Lock held, so that the abort cannot hit a job."""
        if self._idling and self._completer is not None:
            self._completer.abort()

    def _ready(self) -> bool:
        return (
            self._closing
            or self._load is not None
            or (self._completer is not None and bool(self._waiting or self._tasks))
        )

    def _run(self) -> None:
        heap = Trimmer()
        while True:
            with self._changed:
                found = self._changed.wait_for(self._ready, self._idle_s if self._idle_work else None)
                if self._closing:
                    break
                load, self._load = self._load, None
                self._idling = not found
                task = None
                if found and load is None and not self._waiting:
                    task = self._tasks.pop(next(iter(self._tasks)))
                elif found and load is None:
                    self._running = self._waiting.pop(self._next())
            if not found:
                self._idle()
            elif load is not None:
                self._replace(*load)
            elif task is not None:
                assert self._completer is not None
                task.run(self._completer)
            else:
                self._decode()
            if not self._ready():
                heap.trim()
        self._finish_tasks()
        self._free()

    def _next(self) -> str:
        """Lock held, something waits: the document of the job that has its turn."""
        return min(self._waiting, key=lambda document: self._waiting[document].gives_way)  # the first of equals

    def _finish_tasks(self) -> None:
        """Run the waiting tasks, the latest first, as long as there is time: an accepted completion is to be learnt."""
        end = monotonic() + CLOSING_S
        for task in reversed(self._tasks.values()):
            if self._completer is not None and monotonic() < end:
                task.run(self._completer)
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
        with self._changed:
            done = begins = self._ready() or self._may_work_ahead()
        try:
            if begins and self._completer is not None:
                done = self._completer.idle(lambda: not self._ready())
        except Exception:
            logger.exception("what is done while nobody waits has failed")
        with self._changed:
            self._idling = False
            self._somebody_waits()  # for the next request, which is received and read at this priority
        self._idle_work = not done

    def _decode(self) -> None:
        job, completer = self._running, self._completer
        assert job is not None
        assert completer is not None
        result = None
        with self._changed:
            begins = not job.ahead or job.cancel.is_set() or self._may_work_ahead()
        try:
            if begins:
                result = job.work(completer, job.cancel)
        except Exception as error:
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

    def _replace(self, load: Callable[[], Worker], done: Callable[[Exception | None], None]) -> None:
        self._free()
        failure: Exception | None = None
        completer = None
        try:
            completer = load()
        except Exception as error:
            failure = error
        with self._changed:
            self._completer = completer
            self._idle_work = completer is not None
            # A newer load may be on its way: then the requests wait for that one.
            self._failed = failure is not None and self._load is None
            if self._failed:
                for job in self._waiting.values():
                    job.resolve(None)
                self._waiting.clear()
                for task in self._tasks.values():
                    task.end()
                self._tasks.clear()
        done(failure)

    def _free(self) -> None:
        with self._changed:
            completer, self._completer = self._completer, None
        if completer is not None:
            try:
                completer.close()
            except Exception:
                logger.exception("the models could not be freed")


def _may_be_replaced(job: Job) -> bool:
    """Whether work ahead may begin in spite of this job."""
    return job.ahead or (job.gives_way > 0 and job.cancel.is_set())
