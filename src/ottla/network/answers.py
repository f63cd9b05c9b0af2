"""The responses of one connection, in request order, up to its outbox.

A reply keeps its place in `pending` until it and all before it are answered; then its parts are
gathered, and everything gathered in one turn leaves in one write.

Durations are counted in runs: consecutive responses of the same API whose requests came in one
receive, and which leave together, took the same time. A run costs two clock reads, a response none.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Container, Sequence
from time import monotonic_ns
from typing import Final

from ottla.network.durations import ApiCounters
from ottla.network.file_part import FILE_PART_MEMORY_BYTES, Part, memory_size
from ottla.network.outbox import Outbox, nothing
from ottla.network.session_hub import Hub

GATHERED_BYTES_MAX = 262_144
JOINED_BYTES_MAX = 65_536  # Above this, writing several buffers is cheaper than joining them.

# The API keys of requests that may be dispatched while an earlier one has no response yet.
Overtakers = Container[int]
NOBODY: Final[Overtakers] = frozenset()


class Reply:
    """The place of one response in the order of responses."""

    __slots__ = ("_answers", "api", "parts", "received_ns", "request_size")

    def __init__(
        self, answers: "Answers", request_size: int, api: ApiCounters, received_ns: int
    ) -> None:
        self._answers = answers
        self.api = api
        self.received_ns = received_ns
        self.request_size = request_size
        self.parts: Sequence[Part] | None = None

    def send(self, parts: Sequence[Part]) -> None:
        """Answer, once, on the event loop's thread. No effect if the connection has ended."""
        answers = self._answers
        if answers.closed:
            return
        assert self.parts is None, "a request was answered twice"
        self.parts = parts
        if answers.pending[0] is self:
            answers.release()
        else:
            answers.hold(parts)

    def skip(self) -> None:
        """This request gets no response; those behind it may leave."""
        self.send(())

    def let_pass(self, overtakers: Overtakers) -> None:
        """The effect has happened and only the response is missing. Nothing has overtaken it so
        far; requests that it has overtaken itself let the same ones pass."""
        answers = self._answers
        if not answers.closed and self.parts is None:
            answers.let_pass(overtakers)

    @property
    def is_newest(self) -> bool:
        """Whether it waits for its response, and no other reply has been created since."""
        pending = self._answers.pending
        return self.parts is None and bool(pending) and pending[-1] is self


class Answers:
    __slots__ = (
        "_gathered",
        "_gathered_files",
        "_gathered_size",
        "_held_size",
        "_hub",
        "_on_change",
        "_pending_max",
        "_pending_size_max",
        "_run_api",
        "_run_count",
        "_run_received_ns",
        "_scheduled",
        "_transport",
        "closed",
        "gathering",
        "outbox",
        "overtakers",
        "pending",
        "pending_size",
    )

    def __init__(
        self,
        hub: Hub,
        transport: asyncio.Transport,
        plain_socket: socket.socket | None,
        on_change: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._hub = hub
        self._transport = transport
        self._on_change = on_change  # A bound may be exceeded now, or hold again.
        self._pending_max = hub.config.pending_requests_max
        self._pending_size_max = hub.config.pending_request_bytes_max
        self._held_size = 0  # Memory of responses that wait for an earlier one.
        self._gathered: list[Part] = []
        self._gathered_size = 0  # In memory.
        self._gathered_files = False  # There is a file among them.
        # The gathered responses that are not timed yet. All of one receive have the same integer,
        # so that no two need be compared.
        self._run_api = hub.unnamed_api
        self._run_received_ns = 0
        self._run_count = 0
        self._scheduled = False
        self.outbox = Outbox(hub, transport, plain_socket, on_change, on_failure)
        self.closed = False
        self.gathering = False  # Whoever sets it calls `flush` at the end.
        self.pending: deque[Reply] = deque()
        self.pending_size = 0  # Bytes of the requests without a response yet.
        self.overtakers = NOBODY  # Those that all pending ones let pass, if there are any.

    @property
    def unsent_bytes(self) -> int:
        """The memory that responses take until the socket has them."""
        return (
            self._held_size
            + self._gathered_size
            + self.outbox.unsent_bytes
            + self._transport.get_write_buffer_size()
        )

    @property
    def all_left(self) -> bool:
        """Whether every response has been handed to the transport."""
        return not (self.pending or self._gathered or self.outbox.parts)

    def reply(self, request_size: int, overtakers: Overtakers, api: ApiCounters) -> Reply:
        reply = Reply(self, request_size, api, self._hub.received_ns)
        pending = self.pending
        if not pending:
            self.overtakers = overtakers
        elif overtakers is not self.overtakers:
            self.overtakers = NOBODY
        pending.append(reply)
        self.pending_size += request_size
        if len(pending) >= self._pending_max or self.pending_size > self._pending_size_max:
            self._on_change()
        return reply

    def let_pass(self, overtakers: Overtakers) -> None:
        self.overtakers = overtakers
        self._on_change()

    def send_now(self, data: bytes, api: ApiCounters) -> None:
        """A complete response that takes the next place. Only if nothing is pending."""
        received_ns = self._hub.received_ns
        if received_ns is not self._run_received_ns or api is not self._run_api:
            if self._run_count:
                self._end_run()
            self._run_api = api
            self._run_received_ns = received_ns
        self._run_count += 1
        self._gathered.append(data)
        self._gathered_size += len(data)
        if self._gathered_size > GATHERED_BYTES_MAX or not self.gathering:
            self._flush_when_due()

    def hold(self, parts: Sequence[Part]) -> None:
        """Count a response that waits for an earlier one."""
        self._held_size += sum(map(memory_size, parts))
        if self._held_size > self._hub.config.unsent_bytes_max:
            self._on_change()

    def release(self) -> None:
        """Gather the responses whose turn it is."""
        pending = self.pending
        parts = self._take_next()
        self._gather(parts)
        while pending and pending[0].parts is not None:
            parts = self._take_next()
            self._held_size -= self._gather(parts)
        if self._gathered_size > GATHERED_BYTES_MAX or not self.gathering:
            self._flush_when_due()

    def _take_next(self) -> Sequence[Part]:
        reply = self.pending.popleft()
        self.pending_size -= reply.request_size
        if reply.received_ns is not self._run_received_ns or reply.api is not self._run_api:
            if self._run_count:
                self._end_run()
            self._run_api = reply.api
            self._run_received_ns = reply.received_ns
        self._run_count += 1
        assert reply.parts is not None
        return reply.parts

    def _end_run(self) -> None:
        """Like Durations.add, without the call."""
        api, count = self._run_api, self._run_count
        duration_ns = monotonic_ns() - self._run_received_ns
        api.counts[duration_ns.bit_length()] += count
        api.total_ns += duration_ns * count
        self._run_count = 0

    def _gather(self, parts: Sequence[Part]) -> int:
        size = 0
        for part in parts:
            if isinstance(part, bytes):
                size += len(part)
            else:
                size += FILE_PART_MEMORY_BYTES
                self._gathered_files = True
        self._gathered.extend(parts)
        self._gathered_size += size
        return size

    def _flush_when_due(self) -> None:
        if not self.gathering:
            self.flush_later()
            return
        self.flush()
        if self.outbox.paused or self.outbox.parts:
            self._on_change()

    def flush_later(self) -> None:
        """Once in this turn of the event loop, whatever else is answered in it."""
        if not self._scheduled:
            self._scheduled = True
            self._hub.loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._scheduled = False
        if self.closed:
            return
        self.flush()
        self.outbox.pump()
        self._on_change()

    def flush(self) -> None:
        if self._run_count:
            self._end_run()
        gathered = self._gathered
        if not gathered or self.closed:
            return
        size = self._gathered_size
        outbox = self.outbox
        self._gathered = []
        self._gathered_size = 0
        if self._gathered_files or outbox.parts or outbox.paused:
            self._gathered_files = False
            outbox.put(gathered, size)
            outbox.pump()
            return
        self._hub.counters.bytes_out += size
        if len(gathered) == 1:
            self._transport.write(gathered[0])  # type: ignore[arg-type]
        elif size <= JOINED_BYTES_MAX:
            self._transport.write(b"".join(gathered))  # type: ignore[arg-type]
        else:
            self._transport.writelines(gathered)  # type: ignore[arg-type]

    def discard(self) -> None:
        """Drop what has not left. Replies sent later have no effect."""
        if self._run_count:
            self._end_run()
        self.closed = True
        self.pending.clear()
        self._gathered.clear()
        self.pending_size = self._held_size = self._gathered_size = 0
        self._on_change = nothing
        self.outbox.discard()
