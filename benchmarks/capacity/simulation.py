"""One replica of an engine under the keys of its developers, pass by pass.

A discrete-event simulation: time goes from one forward pass to the next, as in an engine with continuous batching. A
pass takes a token of every request that is decoding (with drafts: those proposed, too) and as many tokens of prompts as
its size leaves room for. What a key took back leaves the batch behind the pass that is running.

What it costs is the measured T(n), and ``EngineSettings.sequence_ms`` for each further request in the pass: n tokens of
several sequences cost what n tokens of one cost where the weights are most of the work, and more where attention is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.capacity.sessions import Keys, Work
from benchmarks.capacity.waits import Waits
from codespec.draft.costs import LONGEST, CostCurve
from codespec.recent import Recent

MEMORY_MS = 1.0
"""What an answer from memory takes (`python -m benchmarks latency`: 0.5 at the median, 1.0 at the 95th percentile)."""
WARM_UP = 0.1
"""The share of the time, at its beginning, whose requests are not counted."""


@dataclass(frozen=True)
class EngineSettings:
    """Settings of an engine.

    Attributes:
        slots: requests in a batch at most.
        batch: tokens in a pass at most.
        prefill: tokens a second in passes larger than the largest that was measured; 0 is as the curve ends.
        cache: prompts whose KV cache is kept, those used last; 0 is no prefix cache.
        draft: tokens that are proposed for each request in a pass.
        accepted: how many of them are accepted, on average.
        draft_ms: what proposing takes before each pass.
        sequence_ms: what each further request in a pass costs beside its tokens.
        overhead_ms: of each request outside the passes: network, tokens to text.
        late_cancel: 1 where the engine notices only at a request's first token that it was taken back, as llama-server
            does; 0: it leaves the batch, or the queue, behind the pass that is running.
        replicas: how many there are; each user's requests go to the same one.
        gpus: of one replica.
    """

    slots: int = 16
    batch: int = 2048
    prefill: float = 0.0
    cache: int = 64
    draft: int = 0
    accepted: float = 0.0
    draft_ms: float = 0.0
    sequence_ms: float = 0.0
    overhead_ms: float = 1.0
    late_cancel: int = 0
    replicas: int = 1
    gpus: int = 1


def pass_costs(curve: CostCurve, engine: EngineSettings, context: int) -> list[float]:
    """Milliseconds of a pass over n tokens at index n, up to the largest pass of an engine."""
    costs = curve.at(context)
    each = 1e3 / engine.prefill if engine.prefill else costs[LONGEST] / LONGEST
    largest = max(engine.batch, engine.slots * (1 + engine.draft))
    return costs + [costs[LONGEST] + each * more for more in range(1, largest - LONGEST + 1)]


@dataclass
class Outcome:
    """What became of the requests of one replica.

    Attributes:
        waits: of the requests, those that memory answered among them.
        requests: that the engine got.
        memory: requests that memory answered.
        busy: the share of the time in which a pass ran.
        seconds: that were simulated.
    """

    waits: Waits
    requests: int
    memory: int
    busy: float
    seconds: float


@dataclass(eq=False)
class _Request:
    """A request in the engine; without tokens to decode it only reads the prompt."""

    who: int
    unread: int = 0
    tokens: int = 0
    asked: float = 0.0  # seconds
    until: float = 0.0  # the next key, in seconds
    counts: bool = False
    decoded: float = 0.0
    lost: bool = False  # nobody waits for it, which the engine does not know yet
    over: bool = False


def simulate(
    keys: Keys, seconds: float, work: Work, engine: EngineSettings, costs: Sequence[float], switch_ms: float = 0.0
) -> Outcome:
    """Let one replica answer ``keys`` of the first ``seconds``.

    Args:
        costs: as ``pass_costs`` gives them.
        switch_ms: added to a pass of another size than the one before.
    """
    return _Replica(keys, seconds, work, engine, costs, switch_ms).run()


@dataclass
class _Replica:
    keys: Keys
    seconds: float
    work: Work
    engine: EngineSettings
    costs: Sequence[float]
    switch_ms: float
    ms: list[float] = field(default_factory=list)
    answered: list[bool] = field(default_factory=list)
    requests: int = 0
    memory: int = 0
    busy_s: float = 0.0

    def __post_init__(self) -> None:
        keys, count = self.keys, int(self.keys.who.max()) + 1 if len(self.keys.who) else 0
        self._at, self._until = keys.at.tolist(), keys.until.tolist()
        self._who, self._opens = keys.who.tolist(), keys.opens.tolist()
        self._along = (keys.luck < self.work.memory).tolist()
        self._answer = keys.answer.tolist()
        self._events = self._in_order()
        self._shown = [False] * count  # whether a completion is shown
        self._unread = [self.work.prompt] * count
        self._current: list[_Request | None] = [None] * count
        self._cached: Recent[int, None] = Recent(self.engine.cache)
        for who in range(min(count, self.engine.cache)):  # as if the day had begun before
            self._cached[who] = None
            self._unread[who] = self.work.reread
        self._batch: list[_Request] = []
        self._queue: deque[_Request] = deque()
        self._last_size = 0

    def _in_order(self) -> list[tuple[float, bool, int]]:
        """When, whether it is a request (or a key), and the key's number."""
        keys, later = self.keys, self.keys.at + self.work.debounce_ms / 1e3
        asks = np.flatnonzero(later < keys.until)
        when = np.concatenate((keys.at, later[asks]))
        number = np.concatenate((np.arange(len(keys.at)), asks))
        order = np.argsort(when, kind="stable")
        is_request = order >= len(keys.at)
        return list(zip(when[order].tolist(), is_request.tolist(), number[order].tolist(), strict=True))

    def run(self) -> Outcome:
        """Let time pass."""
        now, place, events = 0.0, 0, self._events
        while True:
            while place < len(events) and events[place][0] <= now:
                when, is_request, key = events[place]
                self._ask(when, key) if is_request else self._press(key)
                place += 1
            self._settle(now)
            if self._batch:
                now += self._pass()
            elif place < len(events):
                now = events[place][0]
            else:
                break
        waits = Waits.of(self.ms, self.answered)
        return Outcome(waits, self.requests, self.memory, self.busy_s / max(now, 1e-9), self.seconds)

    def _press(self, key: int) -> None:
        """A key takes back what was asked before it, unless it goes on as what is shown."""
        who, opens = self._who[key], self._opens[key]
        self._unread[who] = self.work.prompt if opens else min(self.work.prompt, self._unread[who] + self.work.reread)
        self._shown[who] = self._shown[who] and self._along[key] and not opens
        if self._shown[who]:
            return
        if (request := self._current[who]) is not None:
            self._take_back(request)
        if self.work.prefill and self.engine.cache:
            self._submit(_Request(who))

    def _ask(self, when: float, key: int) -> None:
        """The editor's request behind a key."""
        who = self._who[key]
        counts = when >= WARM_UP * self.seconds
        if self._shown[who]:
            self.memory += counts
            self._note(counts, MEMORY_MS, True)
            return
        request = self._current[who]
        if request is None:
            request = _Request(who)
            self._submit(request)
        request.tokens, request.asked, request.until, request.counts = self._answer[key], when, self._until[key], counts
        self.requests += counts

    def _submit(self, request: _Request) -> None:
        self._current[request.who] = request
        self._queue.append(request)

    def _begin(self, request: _Request) -> None:
        """Put a request into the batch."""
        who = request.who
        if who not in self._cached:
            self._unread[who] = self.work.prompt
        request.unread = max(1, self._unread[who])  # the last token is read again for its logits
        self._batch.append(request)
        self._keep(who)

    def _take_back(self, request: _Request) -> None:
        self._current[request.who] = None
        if request.tokens:
            self._note(request.counts, (request.until - request.asked) * 1e3, False)
        request.lost = bool(self.engine.late_cancel) and not request.decoded
        request.over, request.tokens = not request.lost, 1

    def _note(self, counts: bool, ms: float, answered: bool) -> None:
        if counts:
            self.ms.append(ms)
            self.answered.append(answered)

    def _settle(self, now: float) -> None:
        """Answer what is decoded, and fill the batch from the queue."""
        for request in self._batch:
            if not request.over and not request.unread and request.decoded > request.tokens - 1e-6:
                self._answer_request(request, now)
        self._batch = [request for request in self._batch if not request.over]
        while self._queue and len(self._batch) < self.engine.slots:
            request = self._queue.popleft()
            if not request.over:
                self._begin(request)

    def _answer_request(self, request: _Request, now: float) -> None:
        if request.lost:
            request.over = True
        elif not request.tokens:  # it was to read the prompt only
            self._current[request.who], request.over = None, True
        elif now + self.engine.overhead_ms / 1e3 > request.until:  # the next key is quicker than the network
            self._take_back(request)
        else:
            self._current[request.who], request.over = None, True
            self._shown[request.who] = True
            self._note(request.counts, (now - request.asked) * 1e3 + self.engine.overhead_ms, True)

    def _keep(self, who: int) -> None:
        """Keep the KV cache of a developer's prompt, and let that go which was not used longest."""
        if self.engine.cache:
            self._cached[who] = None

    def _pass(self) -> float:
        """One forward pass over the batch; returns its seconds."""
        engine, size, sequences, reading = self.engine, 0, 0, []
        for request in self._batch:
            if request.unread:
                reading.append(request)
            else:
                sequences += 1
                size += 1 + engine.draft
                request.decoded += 1 + engine.accepted
        drafted = size > 0 and engine.draft > 0
        for request in reading:
            chunk = min(request.unread, engine.batch - size)
            if chunk <= 0:
                break
            sequences += 1
            size += chunk
            request.unread -= chunk
            if not request.unread:
                request.decoded = 1.0
            if engine.cache:
                self._unread[request.who] = request.unread
        ms = self.costs[size] + engine.sequence_ms * (sequences - 1) + engine.draft_ms * drafted
        ms += self.switch_ms * (size != self._last_size)
        self._last_size = size
        self.busy_s += ms / 1e3
        return ms / 1e3
