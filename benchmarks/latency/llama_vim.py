"""llama.vim in front of ``llama-server``: when it asks, what it sends, what it keeps and what it shows.

After ``autoload/llama.vim`` of github.com/ggml-org/llama.vim, with its default options; the functions below name those
that they follow. On every move of the cursor in insert mode ``s:on_move`` looks for an answer in the cache, then
``llama#fim`` asks, unless a request is under way: then it tries again after 100 ms. No request is ever cancelled. What
is shown is assumed to be accepted, and a second, speculative request asks for what follows it. What curl and Vim script
take for themselves is not part of what is measured here; that flatters llama.vim.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from benchmarks.latency.llama_vim_memory import RING_CHUNK_SIZE, Cache, Ring
from benchmarks.latency.typing import Press, Session

# s:default_config
N_PREFIX, N_SUFFIX, N_PREDICT = 256, 64, 128
T_MAX_PROMPT_MS, T_MAX_PREDICT_MS, T_FIRST_PREDICT_MS = 500, 1000, 250
MAX_LINE_SUFFIX = 8
RING_SCOPE, RING_UPDATE_MS, RING_IDLE_S = 1024, 1000, 3.0
AGAIN_MS, BUFFER_ENTER_MS = 100, 100
LOOK_BACK = 128  # characters that may have been typed since an answer
_FIELDS = ["content", "timings/prompt_n", "timings/predicted_n", "truncated", "tokens_cached"]

Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the body of a request to ``/infill`` and returns the answer."""


@dataclass(frozen=True)
class Local:
    """The text around a place, ``s:fim_ctx_local``."""

    prefix: str
    middle: str
    suffix: str
    indent: int
    line_suffix: str

    def key(self, prefix: str | None = None) -> str:
        """What an answer is kept under."""
        return (self.prefix if prefix is None else prefix) + self.middle + "Î" + self.suffix


@dataclass(frozen=True)
class Sent:
    """One request that was answered.

    Attributes:
        role: ``first``, ``speculative``, or ``ring`` for chunks of context.
        ms: from sending it to its answer.
        prompt_n, predicted_n: tokens that the server evaluated of the prompt, and generated.
    """

    role: str
    ms: float
    prompt_n: int
    predicted_n: int


class LlamaVim:
    """The plugin in one editor; ``start`` and ``stop`` it inside an event loop.

    Attributes:
        sent: the requests that were answered, in the order of their answers.
        failures: what the server refused, and why.
    """

    def __init__(self, ask: Ask, seed: int) -> None:
        self.shown = ""
        self.sent: list[Sent] = []
        self.failures: list[str] = []
        self._ask = ask
        self._cache = Cache()
        self._context = Ring(random.Random(seed))
        self._lines: list[str] = [""]
        self._name = ""
        self._row = self._column = 0
        self._inserting = self._modified = False
        self._hint: list[str] | None = None  # what is shown, line by line
        self._can_accept = False
        self._picked_row = -9999
        self._indent_last = -1
        self._last_move = perf_counter()
        self._job: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._press: Press | None = None
        self._asked_at: float | None = None
        self._ring: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Begin to work off the queue of chunks, ``s:ring_update``."""
        self._ring = asyncio.get_running_loop().call_later(RING_UPDATE_MS / 1e3, self._update_ring)

    async def stop(self) -> None:
        """Stop timers, and wait for what is under way."""
        for timer in (self._ring, self._again):
            if timer is not None:
                timer.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def open(self, number: int, session: Session) -> None:
        """Enter a buffer, and insert mode."""
        self._lines = (session.before + session.after).split("\n")
        self._name = session.path
        self._row, self._column = session.before.count("\n"), 0
        self._inserting, self._modified = True, False
        self._press = None
        asyncio.get_running_loop().call_later(BUFFER_ENTER_MS / 1e3, self._pick_around)
        self._move()

    async def press(self, key: str, press: Press) -> None:
        """Put text before the cursor: ``CursorMovedI``."""
        self._modified = True
        line = self._lines[self._row]
        new = (line[: self._column] + key + line[self._column :]).split("\n")
        self._lines[self._row : self._row + 1] = new
        self._row += len(new) - 1
        self._column = len(new[-1]) - len(line[self._column :])
        self._press, self._asked_at = press, None
        self._move()

    async def close(self) -> None:
        """Leave insert mode, save, leave the buffer: ``InsertLeavePre``, ``BufWritePost`` and ``BufLeave``."""
        self._hide()
        self._press = None
        self._inserting = self._modified = False
        self._pick_around()
        self._pick_around()

    def _move(self) -> None:
        self._last_move = perf_counter()
        self._hide()
        self._try_hint()
        if self._press is not None:
            self._press.memory = self._press.from_key is not None
        self._fim()

    def _hide(self) -> None:
        """``llama#fim_hide``."""
        self._hint = None
        self.shown = ""

    def _local(self, row: int, column: int, prev: Sequence[str]) -> Local:
        line = self._lines[row]
        indent = self._indent_last
        if not prev:
            before, behind = line[:column], line[column:]
            indent = len(line) - len(line.lstrip())
            if not line.strip():  # a blank line begins at its first column
                before, behind, indent = "", "", 0
            lines = self._lines[max(0, row - N_PREFIX) : row]
        else:
            before, behind = (line + prev[0] if len(prev) == 1 else prev[-1]), ""
            lines = self._lines[max(0, row - N_PREFIX + len(prev) - 1) : row]
            if len(prev) > 1:
                lines = [*lines, line + prev[0], *prev[1:-1]]
        following = self._lines[row + 1 : row + 1 + N_SUFFIX]
        suffix = behind + "\n" + "\n".join(following) + "\n"
        return Local("\n".join(lines) + "\n", before, suffix, indent, behind)

    def _fim(self, place: tuple[int, int] | None = None, prev: Sequence[str] = ()) -> None:
        """``llama#fim``: ask for a place (None: the cursor), as if ``prev`` had been accepted there."""
        if self._job is not None:
            if self._again is not None:
                self._again.cancel()
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(AGAIN_MS / 1e3, self._fim, place, prev)
            return
        row, column = place or (self._row, self._column)
        if not self._inserting or row >= len(self._lines):
            return
        local = self._local(row, column, prev)
        if len(local.line_suffix) > MAX_LINE_SUFFIX:
            return
        keys = [local.key()]
        prefix = local.prefix
        for _ in range(3):
            prefix = prefix.partition("\n")[2]
            if not prefix:
                break
            keys.append(local.key(prefix))
        if any(self._cache.get(key) is not None for key in keys):
            return
        self._indent_last = local.indent
        self._context.evict_similar(self._around())
        self._send(local, keys, prev)
        if abs(row + 1 - self._picked_row) > 32:
            far = self._lines[max(0, row - RING_SCOPE) : max(1, row + 1 - N_PREFIX)]
            self._context.pick(far, self._name, evict=False)
            first = min(len(self._lines), row + 1 + N_SUFFIX) - 1
            self._context.pick(self._lines[first : first + RING_CHUNK_SIZE + 1], self._name, evict=False)
            self._picked_row = row + 1

    def _send(self, local: Local, keys: list[str], prev: Sequence[str]) -> None:
        body = {
            "id_slot": 0,
            "input_prefix": local.prefix,
            "input_suffix": local.suffix,
            "input_extra": self._context.extra(),
            "prompt": local.middle,
            "n_predict": N_PREDICT,
            "stop": [],
            "n_indent": local.indent,
            "top_k": 40,
            "top_p": 0.90,
            "samplers": ["top_k", "top_p", "infill"],
            "stream": False,
            "cache_prompt": True,
            "t_max_prompt_ms": T_MAX_PROMPT_MS,
            # The first request is quick: a speculative one follows it.
            "t_max_predict_ms": T_MAX_PREDICT_MS if prev else T_FIRST_PREDICT_MS,
            "response_fields": _FIELDS,
        }
        if not prev and self._press is not None:
            self._press.asked = True
            self._asked_at = perf_counter()
        self._job = self._keep(self._request(body, "speculative" if prev else "first", keys))

    async def _request(self, body: dict[str, Any], role: str, keys: list[str]) -> None:
        answer = await self._answer(body, role)
        if answer is not None:
            self._on_response(keys, answer)
        self._job = None  # s:fim_on_exit comes behind s:fim_on_response

    async def _answer(self, body: dict[str, Any], role: str) -> dict[str, Any] | None:
        began = perf_counter()
        try:
            answer = await self._ask(body)
        except (OSError, RuntimeError) as error:
            self.failures.append(f"{role}: {error}")
            return None
        ms = (perf_counter() - began) * 1e3
        counts = (int(answer.get(f"timings/{name}", 0)) for name in ("prompt_n", "predicted_n"))
        self.sent.append(Sent(role, ms, *counts))
        return answer

    def _on_response(self, keys: list[str], answer: dict[str, Any]) -> None:
        """``s:fim_on_response``."""
        if "content" not in answer:
            return
        for key in keys:
            self._cache.insert(key, str(answer["content"]))
        if self._hint is None or not self._can_accept:
            self._try_hint()

    def _try_hint(self) -> None:
        """``s:fim_try_hint``: show what the cache has for the cursor, then ask for what follows that."""
        if not self._inserting:
            return
        local = self._local(self._row, self._column, ())
        content = self._cache.get(local.key())
        if content is None:
            content = self._typed_through(local)
        if content is None:
            return
        self._render(content)
        if self._press is not None:
            self._press.answer(self.shown, self._asked_at)
        assert self._hint is not None
        self._fim((self._row, self._column), self._hint)

    def _typed_through(self, local: Local) -> str | None:
        """What is left of the longest answer given at most ``LOOK_BACK`` characters before, if it was typed."""
        text, best = local.prefix + local.middle, None
        for count in range(1, min(LOOK_BACK, len(text)) + 1):
            content = self._cache.get(text[:-count] + "Î" + local.suffix)
            if content is not None and content[:count] == text[-count:] and len(content) > count:
                best = max(best or "", content[count:], key=len)
        return best

    def _render(self, content: str) -> None:
        """``s:fim_render``: what is shown of an answer; nothing of it where it repeats what is there."""
        lines = re.split("\n", content)
        while lines and not lines[-1]:
            lines.pop()
        self._can_accept = bool(lines)
        lines = lines or [""]
        line = self._lines[self._row]
        if not line.strip():
            lead = min(len(lines[0]) - len(lines[0].lstrip()), len(line))
            line, lines[0] = lines[0][:lead], lines[0][lead:]
        before, behind = line[: self._column], line[self._column :]
        if self._repeats(lines, before, behind):
            lines = [""]
        self.shown = "\n".join(lines)
        lines[-1] += behind
        if not "".join(lines).strip():
            self._can_accept = False
        self._hint = lines

    def _repeats(self, lines: list[str], before: str, behind: str) -> bool:
        below = self._lines[self._row + 1 :]
        count = len(lines)
        if count > 1 and not lines[0] and lines[1:] == below[: count - 1]:
            return True
        if count == 1 and lines[0] == behind:
            return True
        first = next((n for n, each in enumerate(below) if each.strip()), len(below) - 1)
        if not below or before + lines[0] != below[first]:
            return False
        rest = below[first + 1 :]
        if count == 2:
            return (rest[0] if rest else "").startswith(lines[1])
        return count == 1 or lines[1:] == rest[: count - 1]

    def _around(self) -> list[str]:
        half = RING_CHUNK_SIZE // 2
        return self._lines[max(0, self._row - half) : self._row + half + 1]

    def _pick_around(self) -> None:
        if not self._modified:  # chunks of a changed buffer are not picked
            self._context.pick(self._around(), self._name, evict=True)

    def _update_ring(self) -> None:
        """``s:ring_update``: a queued chunk joins the context, and the server reads it while nobody types."""
        self._ring = asyncio.get_running_loop().call_later(RING_UPDATE_MS / 1e3, self._update_ring)
        if (self._inserting and perf_counter() - self._last_move < RING_IDLE_S) or not self._context.advance():
            return
        body = {
            "id_slot": 0,
            "input_prefix": "",
            "input_suffix": "",
            "input_extra": self._context.extra(),
            "prompt": "",
            "n_predict": 0,
            "temperature": 0.0,
            "samplers": [],
            "stream": False,
            "cache_prompt": True,
            "t_max_prompt_ms": 1,
            "t_max_predict_ms": 1,
            "response_fields": _FIELDS[1:],  # llama.vim asks for none
        }
        self._keep(self._answer(body, "ring"))

    def _keep(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
