"""Incoming frames: what a connection receives, and when it is read.

A frame is four bytes of size (big-endian) and a body, whose first two bytes are the key of its API.
Every complete frame is handed to `dispatch` inside the receive callback, in place: the memoryview
is writable and valid only during the call.

A frame that may not overtake what is pending (see `session`) is held back. Reading pauses while one
of the connection's bounds is exceeded (requests without a response, their bytes, unsent bytes),
until it falls to half of it; while it uses more than its part of the memory for all connections
(budget.py); while a frame is held back; while it is muted for a quota; and from the end of its turn
to the next (turns.py). Frames received already are then kept, not dispatched. A connection that
uses memory and makes no progress is closed (stalls.py).
"""

import asyncio
import socket
from time import monotonic_ns
from typing import TYPE_CHECKING, cast

from ottla.network.answers import Answers
from ottla.network.budget import SMALL_BYTES
from ottla.network.large_frame import LargeFrame
from ottla.network.partial import (
    KEY_BYTES,
    SIZE_BYTES,
    Partial,
    api_key,
    arrived_bytes,
    missing_bytes,
    unpack_key,
    unpack_size,
)
from ottla.network.session_hub import Hub, logger
from ottla.network.stalls import Patience, Transfer
from ottla.network.turns import FRAMES_BETWEEN_LOOKS, LITTLE_FRAMES
from ottla.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from ottla.network.sasl_gate import SaslGate
    from ottla.network.session import Session

REST_BYTES_MAX = 16_384  # Up to this size a part of a frame is copied rather than given a buffer.


class Receiver(asyncio.BufferedProtocol):
    """The protocol that a session's transport calls."""

    __slots__ = (
        "_active",
        "_active_at_ms",
        "_answers",
        "_charge",
        "_closed",
        "_gate",
        "_halted",
        "_held_key",
        "_hub",
        "_muting",
        "_partial",
        "_receiving",
        "_sending",
        "_session",
        "_size_max",
        "_socket",
        "_tls",
        "_transport",
        "eof",
        "is_peer",
    )

    def __init__(self, session: "Session", hub: Hub, accepted: socket.socket, *, tls: bool) -> None:
        self.eof = False  # The peer has closed its half.
        self.is_peer = False  # It is another broker.
        self._session = session  # Until the connection is lost: the session has this, too.
        self._closed = False  # Nothing is received or sent any more.
        self._hub = hub
        self._socket = accepted
        self._tls = tls
        self._gate: SaslGate | None = None  # Before the dispatcher, while the peer must log in.
        self._size_max = hub.config.request_bytes_max  # Of a request.
        self._transport: asyncio.Transport
        self._answers: Answers
        self._active = True
        self._active_at_ms = 0.0
        self._partial: Partial | None = None
        self._halted = False  # Invariant: while it is true, nothing is dispatched.
        self._held_key: int | None = None  # Of the frame held back. It is halted then.
        self._muting: asyncio.TimerHandle | None = None  # It is halted then.
        self._charge = 0  # What the budget knows about this connection's usage.
        self._receiving: Transfer | None = None  # Of the incomplete request.
        self._sending: Transfer | None = None  # Of what the transport holds.

    def become_peer(self) -> None:
        """It has sent what only brokers send."""
        if self.is_peer or self._closed:
            return
        budget = self._hub.budget
        budget.charge(self, -self._charge)
        self.is_peer = True
        budget.charge(self, self._charge)

    def guard(self, gate: "SaslGate", request_bytes_max: int) -> None:
        """From now on requests go through the gate."""
        self._gate = gate
        self._size_max = request_bytes_max

    def unguard(self) -> None:
        """The normal size limit applies; requests on the way still pass the gate."""
        self._gate = None
        self._size_max = self._hub.config.request_bytes_max

    def mute(self, time_ms: float) -> None:
        """Ignore the peer for this long. What it has requested so far is answered."""
        if self._closed:
            return
        loop = self._hub.loop
        end_s = loop.time() + time_ms / 1000
        if self._muting is not None:
            if end_s <= self._muting.when():
                return
            self._muting.cancel()
        self._muting = loop.call_at(end_s, self._unmute)
        if not self._halted:
            self._halt()

    def _unmute(self) -> None:
        self._muting = None
        self._settle()

    @property
    def held_bytes(self) -> int:
        """The memory that this connection's requests and responses take."""
        received = len(self._partial) if self._partial else 0
        return received + self._answers.pending_size + self._answers.unsent_bytes

    @property
    def paused(self) -> bool:
        return self._halted and not self._closed

    def idle_ms(self, now_ms: float) -> float:
        """Time since a request was completed or a response moved; 0 while we owe a response."""
        answers = self._answers
        if self._active or (answers.pending and not answers.outbox.paused):
            self._active = False
            self._active_at_ms = now_ms
        return now_ms - self._active_at_ms

    def end(self) -> None:
        """Receive nothing more, and release everything."""
        self._closed = True
        if self._halted:
            self._hub.counters.sessions_paused -= 1
        self._halted = True
        if self._muting is not None:
            self._muting.cancel()
            self._muting = None
        self._partial = None
        self._answers.discard()
        charge, self._charge = self._charge, 0
        self._hub.budget.charge(self, -charge)
        self._hub.budget.forget(self)

    # Called by the transport.

    def connection_made(self, base_transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", base_transport)  # uvloop's does not inherit it.
        hub = self._hub
        self._transport = transport
        plain_socket = None if self._tls else self._socket
        self._answers = Answers(hub, transport, plain_socket, self._on_change, self._fail)
        # Paused means exactly that the transport holds something, so that a waiter for its bytes
        # to leave is notified. With TLS, 0 would pause writing with nothing held. Writing may pause
        # in this call: the last bytes of the handshake are there.
        transport.set_write_buffer_limits(high=1 if self._tls else 0, low=0)
        self._active_at_ms = hub.monotonic_ms()
        self._session.on_connected(self, transport, self._answers)

    def connection_lost(self, _error: Exception | None) -> None:
        session = self._session
        del self._session  # A cycle would keep both until the collector runs, which is rare.
        session.on_connection_lost()
        # So would the TLS transport, which keeps this for good and a buffer of 256 KB.
        del self._transport, self._answers
        if self._tls:
            self._hub.trimmer.on_closed()

    def get_buffer(self, _sizehint: int) -> memoryview:
        partial = self._partial
        if partial is None:
            return self._hub.offered
        if isinstance(partial, bytes):
            return self._hub.space_after(partial)
        return partial.space(self._hub.offered)

    def buffer_updated(self, size: int) -> None:
        hub = self._hub
        hub.counters.bytes_in += size
        hub.received_ns = monotonic_ns()
        partial = self._partial
        answers = self._answers
        answers.gathering = True
        if partial is None:
            self._take_frames(size)
        elif isinstance(partial, bytes):
            self._take_frames(len(partial) + size)
        elif partial.take(size, hub.view):
            self._take_large_frame(partial)
        answers.gathering = False
        answers.flush()
        if self._partial is not None or self._charge or answers.pending or answers.outbox.paused:
            self._settle()

    def eof_received(self) -> bool:
        """A peer that has closed its half still gets its responses (except over TLS)."""
        self.eof = True
        if not self._halted:
            self._partial = None
        session = self._session
        session.on_half_closed()
        return not self._tls and not session.closed and not self._answers.all_left

    def pause_writing(self) -> None:
        self._answers.outbox.paused = True

    def resume_writing(self) -> None:
        outbox = self._answers.outbox
        outbox.paused = False
        self._sending = None
        if not self._closed:
            outbox.pump()
            self._on_change()

    # Frames.

    def _take_frames(self, end: int) -> None:
        """Dispatch the frames in the shared buffer, up to `end`; keep what is left."""
        hub, session = self._hub, self._session
        gate = self._gate
        dispatch = hub.dispatch if gate is None else gate.dispatch
        buffer, view, size_max = hub.buffer, hub.view, self._size_max
        answers = self._answers
        pending = answers.pending
        look_at_count, turn_end_ms = hub.turns.begin(is_peer=self.is_peer)
        position = count = 0
        self._partial = None
        if look_at_count < LITTLE_FRAMES and end <= SMALL_BYTES:
            look_at_count = LITTLE_FRAMES
        elif not look_at_count and end > SIZE_BYTES + unpack_size(buffer)[0]:
            self._halt()
        try:
            while not self._halted and end - position >= SIZE_BYTES:
                (size,) = unpack_size(buffer, position)
                start = position + SIZE_BYTES
                if size > size_max or start + size > end:
                    break
                if pending and unpack_key(buffer, start)[0] not in answers.overtakers:
                    self._hold_back(unpack_key(buffer, start)[0])
                    break
                position = start + size
                session.frame_size = size
                count += 1
                dispatch(session, view[start:position])
                if count >= look_at_count and position < end and not self._halted:
                    look_at_count += FRAMES_BETWEEN_LOOKS
                    if hub.turns.is_over(turn_end_ms):
                        self._halt()
        except ProtocolError as error:
            self._refuse(error)
        except Exception:
            self._crash()
        if count:
            hub.counters.frames += count
            self._active = True
            self._receiving = None
        self._keep(position, end)

    def _take_large_frame(self, frame: LargeFrame) -> None:
        key = int.from_bytes(frame.view[SIZE_BYTES : SIZE_BYTES + KEY_BYTES], "big", signed=True)
        if self._answers.pending and key not in self._answers.overtakers:
            self._hold_back(key)
            return
        session = self._session
        self._partial = None
        session.frame_size = frame.total - SIZE_BYTES
        self._hub.counters.frames += 1
        self._active = True
        self._receiving = None
        try:
            (self._gate or self._hub).dispatch(session, frame.view[SIZE_BYTES:])
        except ProtocolError as error:
            self._refuse(error)
        except Exception:
            self._crash()
        self._hub.give_spare(frame.buffer)

    def _keep(self, position: int, end: int) -> None:
        """Keep the undispatched bytes of the shared buffer."""
        size = end - position
        if self._closed or not size:
            self._partial = None
            return
        hub = self._hub
        rest = hub.view[position:end]
        if self._halted or size < SIZE_BYTES:
            self._partial = bytes(rest)
            return
        (body_size,) = unpack_size(rest)
        total = body_size + SIZE_BYTES
        if body_size > self._size_max:
            limit = self._size_max
            self._refuse(ProtocolError(f"a request of {body_size} bytes, more than {limit}"))
        elif size <= REST_BYTES_MAX and total <= len(hub.view) and not hub.budget.short:
            self._partial = bytes(rest)
        else:
            # Also when memory is short, because then nothing is received past the end of the frame.
            self._partial = LargeFrame(rest, total, hub.take_spare(total))

    def _refuse(self, error: ProtocolError) -> None:
        self._partial = None
        self._hub.counters.frames_malformed += 1
        self._hub.quiet_log.warn_rarely(
            "malformed",
            "closing the connection of %s, which broke the protocol: %s",
            self._session,
            error,
        )
        self._session.close(str(error))

    def _crash(self) -> None:
        self._hub.counters.dispatch_failures += 1
        logger.exception("closing the connection of %s: its request failed", self._session)
        self._session.close("its request failed")

    def _fail(self, reason: str) -> None:
        self._hub.quiet_log.warn_rarely(
            "failed", "closing the connection of %s: %s", self._session, reason
        )
        self._session.abort(reason)

    # Bounds.

    def on_memory_free(self) -> None:
        self._hub.loop.call_soon(self._settle)

    def _on_change(self) -> None:
        self._active = True
        self._settle()

    def _settle(self) -> None:
        """Update the budget with this session's usage; pause or resume reading; end it if done."""
        if self._closed:
            return
        held = self.held_bytes
        budget = self._hub.budget
        change = held - self._charge
        if change:
            self._charge = held
            budget.charge(self, change)
        is_held_back = self._is_held_back()
        mid_request = self._partial is not None
        if not mid_request:
            budget.release(self)
        if is_held_back:
            return
        if self._halted:
            if self._within(2) and self._has_memory(held):
                self._resume()
        elif not self._within(1) or not self._has_memory(held):
            self._halt()
        if self.eof and not mid_request and self._answers.all_left:
            self._session.close("the peer has closed its half")

    def _has_memory(self, held: int) -> bool:
        budget = self._hub.budget
        if budget.has_room(self, held):
            return True
        partial = self._partial
        missing = 0 if partial is None or not self._may_follow(partial) else missing_bytes(partial)
        if missing and budget.overdraw(self, missing):
            return True
        budget.wait(self, held, missing)
        return False

    def _may_follow(self, partial: Partial) -> bool:
        """Whether the request could be dispatched now if it were complete."""
        key = api_key(partial)
        return key is None or not self._answers.pending or key in self._answers.overtakers

    def _within(self, divisor: int) -> bool:
        """Whether this connection's own bounds, divided, hold."""
        config = self._hub.config
        answers = self._answers
        return (
            len(answers.pending) < config.pending_requests_max // divisor + (divisor - 1)
            and answers.pending_size <= config.pending_request_bytes_max // divisor
            and answers.unsent_bytes <= config.unsent_bytes_max // divisor
        )

    def _hold_back(self, key: int) -> None:
        """The next frame, which is complete, may not overtake what is pending."""
        self._held_key = key
        self._halt()

    def _is_held_back(self) -> bool:
        answers = self._answers
        if self._muting is not None:
            return True
        if self._held_key is None:
            return False
        if answers.pending and self._held_key not in answers.overtakers:
            return True
        self._held_key = None
        return False

    def _halt(self) -> None:
        self._halted = True
        self._hub.counters.pauses += 1
        self._hub.counters.sessions_paused += 1
        self._transport.pause_reading()

    def _resume(self) -> None:
        self._halted = False
        self._hub.counters.sessions_paused -= 1
        self._hub.turns.wait(self._receive_again)

    def _receive_again(self) -> None:
        """Dispatch what was kept while reading was paused, then resume reading."""
        if self._halted:
            return
        partial = self._partial
        if isinstance(partial, bytes) or (partial is not None and partial.is_complete):
            self._answers.gathering = True
            self._hub.received_ns = monotonic_ns()
            if isinstance(partial, bytes):
                self._hub.space_after(partial)
                self._take_frames(len(partial))
            else:
                self._take_large_frame(partial)
            self._answers.gathering = False
            self._answers.flush()
            self._settle()
        if not self._halted:
            self._transport.resume_reading()

    # Stalls.

    def stall(self, patience: Patience) -> str | None:
        """What this connection is stuck on, if it has been for too long."""
        if self._partial is not None:
            problem = self._receive_stall(patience, self._partial)
            if problem:
                return problem
        if self._closed or (patience.short and self._answers.outbox.paused):
            return self._send_stall(patience)
        return None

    def _receive_stall(self, patience: Patience, partial: Partial) -> str | None:
        arrived = arrived_bytes(partial)
        transfer = self._receiving
        if transfer is None:
            self._receiving = Transfer(patience.now_ms, arrived)
            return None
        if self._halted and not self._hub.budget.is_waiting(self):
            self._receiving = None  # We owe responses, so it is us who are slow.
            return None
        is_over = transfer.is_late(patience)
        if not is_over and transfer.is_slow(patience, arrived):
            if self._has_more():
                transfer.go_on(patience, arrived)
            else:
                is_over = not patience.short or self.held_bytes > SMALL_BYTES
        if is_over:
            total = arrived + missing_bytes(partial)
            return f"{arrived} of {total} bytes of a request have come, and no more in time"
        return None

    def _send_stall(self, patience: Patience) -> str | None:
        """While the transport holds something it is given nothing more, so that can only shrink."""
        unsent = self._transport.get_write_buffer_size()
        transfer = self._sending
        if transfer is None:
            self._sending = Transfer(patience.now_ms, -unsent)
        elif transfer.is_slow(patience, -unsent):
            return f"its peer does not read; {unsent} bytes are unsent"
        return None

    def _has_more(self) -> bool:
        """Whether the kernel has bytes from the peer that we have not read."""
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False
