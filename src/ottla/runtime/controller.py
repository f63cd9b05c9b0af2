"""Calls the controller from any node: directly on the quorum leader, otherwise in an Envelope.

`controller.operations` lists what can be called. A call looks for the leader until one answers or
the call times out. If another node becomes leader before the response arrives, it is asked instead;
whether the first one acted is then unknown, as for any client whose connection breaks. A request
that arrived in an Envelope is never forwarded again.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from ottla.controller.mutations import Caller
from ottla.controller.operations import INTERNAL_KEYS, OPERATIONS, QUORUM_KEYS, At
from ottla.network.peers import Peers, PeerSilent, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.codec import newest_request_type, read_response, write_request
from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.times import in_milliseconds
from ottla.runtime.forwarding import envelope_fields
from ottla.runtime.leadership import Leadership
from ottla.runtime.metadata_applier import MetadataApplier
from ottla.runtime.quorum_requests import QuorumRequests

TIMEOUT_MS: Final = 30_000
_BACKOFF_MS_MIN: Final = 20
_BACKOFF_MS_MAX: Final = 500
_PURPOSE: Final = "controller"
_ENVELOPE_KEY: Final = 58
_SIZE_BYTES: Final = 4

# Receives the outcome of a client's request: a response, or the error that rejected all of it.
OnCalled = Callable[[Caller, Any, Any, ApiError | None], None]

_NOT_LEADER: Final = (ErrorCode.not_controller, ErrorCode.not_leader_or_follower)


@dataclass(slots=True, eq=False)
class Controller:
    quorum: QuorumRequests
    leadership: Leadership
    applier: MetadataApplier
    peers: Peers
    loop: AbstractEventLoop
    on_called: OnCalled | None = field(init=False, default=None)

    async def call(
        self, request: Any, *, caller: Caller | None = None, timeout_ms: float | None = None
    ) -> Any:
        """Return the newest response entity for the newest request entity, once its effects are
        committed and in this node's image. ApiError if the whole request is rejected. `caller` is
        the client that made the request; None for the node itself."""
        if caller is not None and caller.is_forwarded:
            return await self.call_here(request, caller)
        on_called = self.on_called
        if caller is None or on_called is None:
            return await self._call(request, caller, timeout_ms)
        try:
            response = await self._call(request, caller, timeout_ms)
        except ApiError as error:
            on_called(caller, request, None, error)
            raise
        on_called(caller, request, response, None)
        return response

    async def _call(self, request: Any, caller: Caller | None, timeout_ms: float | None) -> Any:
        if timeout_ms is None:
            timeout = getattr(request, "timeout", None)
            timeout_ms = TIMEOUT_MS if timeout is None else in_milliseconds(timeout)
        deadline = self.loop.time() + timeout_ms / 1000
        backoff_ms = _BACKOFF_MS_MIN
        while True:
            changed = self.leadership.changed
            try:
                return await self._attempt(request, caller, changed, deadline)
            except ApiError as error:
                if error.code not in _NOT_LEADER:
                    raise
                refusal = error.with_traceback(None)  # The traceback references this frame.
            except PeerSilent:  # Silent for the remaining time.
                message = f"the controller did not answer within {timeout_ms:.0f} ms"
                refusal = ApiError(ErrorCode.request_timed_out, message)
            except PeerUnreachable as error:
                refusal = ApiError(ErrorCode.request_timed_out, f"the controller, {error}")
            left_s = deadline - self.loop.time()
            if left_s <= 0:
                try:
                    raise refusal
                finally:
                    del refusal  # This frame is in its traceback.
            await asyncio.wait([changed], timeout=min(left_s, backoff_ms / 1000))
            backoff_ms = min(2 * backoff_ms, _BACKOFF_MS_MAX)

    async def call_here(self, request: Any, caller: Caller | None = None) -> Any:
        """Like `call`, if this node is the controller; otherwise ApiError NOT_CONTROLLER."""
        if request.__api_key__ in QUORUM_KEYS:
            return await self.quorum.call(request)
        method = OPERATIONS[request.__api_key__].method
        runtime = self.leadership.runtime
        if runtime is None:
            raise ApiError(ErrorCode.not_controller, "another node is the controller")
        outcome = runtime.call(
            lambda machine, now_ms: method(machine, At(now_ms, runtime.next_offset, caller))(
                request
            )
        )
        return await outcome if isinstance(outcome, asyncio.Future) else outcome

    async def _attempt(
        self,
        request: Any,
        caller: Caller | None,
        changed: "asyncio.Future[None]",
        deadline: float,
    ) -> Any:
        if self.leadership.is_here:
            return await self.call_here(request, caller)
        address = self.leadership.address
        if address is None:
            raise ApiError(ErrorCode.not_controller, "no node is known to be the controller")
        sending = self.loop.create_task(self._send(address, request, caller, deadline))
        either: list[asyncio.Future[Any]] = [sending, changed]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise ApiError(ErrorCode.not_controller, "another node is the controller now")
            envelope = sending.result()
        finally:
            sending.cancel()
            del sending, either  # The task's exception has a traceback with this frame.
        response = _unpack(request, envelope)
        if request.__api_key__ not in INTERNAL_KEYS:
            await self.applier.reached(envelope.metadata_offset, deadline - self.loop.time())
        return response

    async def _send(
        self, address: Address, request: Any, caller: Caller | None, deadline: float
    ) -> Any:
        frame = write_request(
            request.__api_key__, request.__version__, 0, self.peers.client_id, request
        )
        envelope = newest_request_type(_ENVELOPE_KEY)(
            request_data=frame[_SIZE_BYTES:],
            **envelope_fields(caller),
        )
        return await self.peers.call(
            address,
            envelope,
            timeout_ms=max(0.0, deadline - self.loop.time()) * 1000,
            purpose=_PURPOSE,
        )


def _unpack(request: Any, envelope: Any) -> Any:
    if envelope.error_code is not ErrorCode.none or envelope.response_data is None:
        raise ApiError(envelope.error_code, "the controller did not take the request")
    try:
        frame = memoryview(envelope.response_data)
        _, response = read_response(request.__api_key__, request.__version__, frame)
    except ProtocolError as error:
        message = f"the controller's answer cannot be read: {error}"
        raise ApiError(ErrorCode.unknown_server_error, message) from error
    code = getattr(response, "error_code", ErrorCode.none)
    if code is not ErrorCode.none:
        raise ApiError(code, getattr(response, "error_message", None) or "")
    return response
