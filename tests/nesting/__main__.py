"""Do everything with documents of every language that nest deeply, in a process that may end or take too long.

    python -m tests.nesting [--depth 1200,100000] [--only python-,-brackets] [--work gate,early] [--slow 3]

Prints what fails, ends the process, takes longer than ``--seconds``, or more than ``--slow`` seconds of the processor;
and the slowest.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection

from tests.nesting.documents import NESTS
from tests.nesting.work import WORK, Document

Task = tuple[int, str, int]
"""Index of a kind, work, depth."""


def _measure(task: Task) -> tuple[float, str]:
    index, work, depth = task
    nest = NESTS[index]
    document = Document(nest.language, *nest.text(depth))
    began = time.process_time()
    try:
        WORK[work](document)
        wrong = ""
    except BaseException as error:
        wrong = f"{type(error).__name__}: {str(error)[:100]}"
    return time.process_time() - began, wrong


def _serve(connection: Connection) -> None:
    while True:
        connection.send(_measure(connection.recv()))


class Worker:
    """A process that measures, and is replaced where it ends or takes too long."""

    def __init__(self) -> None:
        self._process: multiprocessing.Process | None = None

    def measure(self, task: Task, seconds: float) -> tuple[float, str]:
        """Seconds of the processor, and what went wrong."""
        if self._process is None:
            self._connection, theirs = multiprocessing.Pipe()
            self._process = multiprocessing.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        self._connection.send(task)
        try:
            if self._connection.poll(seconds):
                return self._connection.recv()
            self._process.kill()
            wrong = "takes too long"
        except EOFError:
            wrong = ""
        self._process.join()
        wrong = wrong or f"ended with {self._process.exitcode}"
        self._process = None
        return seconds, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", default="1200,100000")
    parser.add_argument("--only", default="")
    parser.add_argument("--work", default=",".join(WORK))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--slow", type=float, default=3.0)
    options = parser.parse_args()
    worker, bad, slowest = Worker(), 0, []
    for index, nest in enumerate(NESTS):
        if options.only and not any(part in str(nest) for part in options.only.split(",")):
            continue
        for work in options.work.split(","):
            for depth in map(int, options.depth.split(",")):
                taken, wrong = worker.measure((index, work, depth), options.seconds)
                slowest.append((taken, str(nest), work, depth))
                if wrong or taken > options.slow:
                    bad += 1
                    print(f"{nest} {work} {depth}: {taken:.2f} s {wrong}", flush=True)
    for taken, *what in sorted(slowest, reverse=True)[:10]:
        print(f"{taken:6.2f} s", *what)
    print(f"{len(slowest)} measured, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
