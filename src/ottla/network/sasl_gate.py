"""Precedes the dispatcher on a connection that must log in (KIP-43, 152, 368).

    handshake --SaslHandshake--> exchange --SaslAuthenticate...--> open
    open --SaslHandshake, if logins expire--> exchange             the same user logs in again
    any --failure--> failed                                        answered late, then closed

Before the first login only ApiVersions, SaslHandshake and SaslAuthenticate are accepted, of a
bounded size and within a bounded time. After SaslHandshake v0 the client sends bare SASL messages,
without request headers, until it is authenticated. The login of a node does not expire: others
would take the end of its connection for that of its process.
"""

import enum
import struct
from asyncio import TimerHandle
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ottla.network.answers import Reply
from ottla.network.session_hub import Hub
from ottla.protocol.codec import newest_response_type, read_request, write_response
from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.frames import API_VERSIONS_KEY, RequestHeader, parse_request_header
from ottla.protocol.lazy_dataclass import dataclass
from ottla.security.errors import AuthenticationFailed
from ottla.security.exchange import Credentials, Exchange, new_exchange
from ottla.security.oauthbearer import VerifyToken
from ottla.security.principal import USER, Principal

if TYPE_CHECKING:
    from ottla.network.session import Session

SASL_HANDSHAKE_KEY: Final = 17
SASL_AUTHENTICATE_KEY: Final = 36
_HANDSHAKE_VERSION_MAX: Final = 1
_AUTHENTICATE_VERSION_MAX: Final = 2
_LOGGED_CHARACTERS_MAX: Final = 200
# Some clients ignore a response that arrives together with the end of the connection.
_CLOSE_AFTER_S: Final = 0.2
_SIZE: Final = struct.Struct(">i")


class _State(enum.Enum):
    HANDSHAKE = enum.auto()
    EXCHANGE = enum.auto()
    OPEN = enum.auto()
    FAILED = enum.auto()


@dataclass(frozen=True, slots=True)
class LoginPolicy:
    """For one listener."""

    mechanisms: tuple[str, ...]
    # None while the node does not know its users yet; clients should retry.
    credentials: Callable[[], Credentials | None]
    new_nonce: Callable[[], str]
    on_login: Callable[["Session", Principal, str], None]  # With this mechanism.
    on_refused: Callable[["Session", str, str], None]  # With a mechanism, for a reason.
    lifetime_ms: int  # 0: as long as the connection.
    request_bytes_max: int
    timeout_ms: int
    failure_delay_ms: int
    verify_token: VerifyToken | None = None


class SaslGate:
    """For one connection."""

    def __init__(self, policy: LoginPolicy, hub: Hub, session: "Session") -> None:
        self._policy = policy
        self._hub = hub
        self._state = _State.HANDSHAKE
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._is_bare = False  # Messages come without request headers.
        self._principal: Principal | None = None  # Of the first login.
        self._expires_ms = 0.0
        self._timeout: TimerHandle | None = hub.loop.call_later(
            policy.timeout_ms / 1000, self._on_timeout, session
        )
        session.call_on_close(self._on_close)

    def dispatch(self, session: "Session", frame: memoryview) -> None:
        if self._state is _State.FAILED:
            return
        if self._is_bare and self._state is _State.EXCHANGE:
            self._respond(session, bytes(frame), None)
            return
        key = int.from_bytes(frame[:2], "big", signed=True)
        if key == SASL_HANDSHAKE_KEY:
            self._handshake(session, frame)
        elif key == SASL_AUTHENTICATE_KEY:
            self._authenticate(session, frame)
        elif self._state is _State.OPEN:
            if self._is_expired() and not session.receiver.is_peer:
                session.close("its login has expired")
            else:
                self._hub.dispatch(session, frame)
        elif key == API_VERSIONS_KEY and self._state is _State.HANDSHAKE:
            self._hub.dispatch(session, frame)
        else:
            raise ProtocolError(f"a request with API key {key} before the login")

    def _is_expired(self) -> bool:
        return bool(self._policy.lifetime_ms) and self._hub.monotonic_ms() > self._expires_ms

    # The handshake.

    def _handshake(self, session: "Session", frame: memoryview) -> None:
        header = parse_request_header(frame)
        if not 0 <= header.api_version <= _HANDSHAKE_VERSION_MAX:
            raise ProtocolError(f"version {header.api_version} of SaslHandshake is not served")
        may_begin = self._state is _State.HANDSHAKE or (
            self._state is _State.OPEN and self._policy.lifetime_ms > 0
        )
        if not may_begin:
            self._answer_handshake(session, header, ErrorCode.illegal_sasl_state)
            return
        credentials = self._policy.credentials()
        if credentials is None:
            session.close("the node starts")
            return
        mechanism = read_request(header, frame).mechanism
        if mechanism not in self._policy.mechanisms:
            self._answer_handshake(session, header, ErrorCode.unsupported_sasl_mechanism)
            self._state = _State.FAILED
            session.close(f"it wants {mechanism[:_LOGGED_CHARACTERS_MAX]!r}, which is not offered")
            return
        if self._principal is not None and mechanism != self._mechanism:
            session.close("it changes the mechanism of its login")
            return
        self._mechanism = mechanism
        self._exchange = new_exchange(
            mechanism, self._policy.new_nonce, credentials, self._policy.verify_token
        )
        self._is_bare = header.api_version == 0
        self._state = _State.EXCHANGE
        self._answer_handshake(session, header, ErrorCode.none)

    def _answer_handshake(self, session: "Session", header: RequestHeader, code: ErrorCode) -> None:
        response = newest_response_type(SASL_HANDSHAKE_KEY)(
            error_code=code, mechanisms=self._policy.mechanisms
        )
        session.send_now(_frame(header, response))

    # The exchange.

    def _authenticate(self, session: "Session", frame: memoryview) -> None:
        header = parse_request_header(frame)
        if not 0 <= header.api_version <= _AUTHENTICATE_VERSION_MAX:
            raise ProtocolError(f"version {header.api_version} of SaslAuthenticate is not served")
        if self._state is not _State.EXCHANGE:
            message = "SaslHandshake comes before SaslAuthenticate"
            session.send_now(_frame(header, _response(ErrorCode.illegal_sasl_state, message)))
            return
        self._respond(session, bytes(read_request(header, frame).auth_bytes), header)

    def _respond(self, session: "Session", message: bytes, header: RequestHeader | None) -> None:
        exchange = self._exchange
        assert exchange is not None
        reply = session.reply()
        if not exchange.is_slow:
            self._finish(session, header, _outcome(exchange, message), reply)
            return
        executor = self._hub.login_executor
        future = self._hub.loop.run_in_executor(executor, _outcome, exchange, message)
        future.add_done_callback(lambda done: self._finish(session, header, done.result(), reply))

    def _finish(
        self,
        session: "Session",
        header: RequestHeader | None,
        outcome: "bytes | AuthenticationFailed",
        reply: Reply,
    ) -> None:
        exchange = self._exchange
        assert exchange is not None
        if session.closed:
            return
        if isinstance(outcome, bytes) and exchange.is_done:
            problem = self._log_in(session, Principal(USER, exchange.username))
            if problem is not None:
                outcome = AuthenticationFailed(problem)
        if isinstance(outcome, AuthenticationFailed):
            self._fail(session, header, str(outcome), reply)
            return
        if header is None:
            reply.send((_SIZE.pack(len(outcome)) + outcome,))
            return
        lifetime_ms = self._lifetime_ms(exchange) if exchange.is_done else 0
        response = _response(ErrorCode.none, None, outcome, lifetime_ms)
        reply.send((_frame(header, response),))

    def _log_in(self, session: "Session", principal: Principal) -> str | None:
        """The problem with it, if any."""
        if self._principal is not None and principal != self._principal:
            return f"{self._principal} logs in again as {principal}"
        self._state = _State.OPEN
        self._principal = principal
        self._hub.counters.log_in(self._mechanism)
        assert self._exchange is not None
        self._expires_ms = self._hub.monotonic_ms() + self._lifetime_ms(self._exchange)
        self._on_close(session)
        session.is_token_authenticated = self._exchange.by_token
        self._policy.on_login(session, principal, self._mechanism)
        return None

    def _lifetime_ms(self, exchange: Exchange) -> int:
        """The listener's, or the rest of a token's, if that is shorter."""
        lifetime_ms = self._policy.lifetime_ms
        if not lifetime_ms or exchange.lifetime_ms is None:
            return lifetime_ms
        return min(lifetime_ms, exchange.lifetime_ms)

    # Failure.

    def _fail(
        self,
        session: "Session",
        header: RequestHeader | None,
        reason: str,
        reply: Reply,
    ) -> None:
        """Delays the response, and everything behind it."""
        self._state = _State.FAILED
        hub = self._hub
        hub.counters.refuse("authentication failed")
        self._policy.on_refused(session, self._mechanism, reason)
        hub.quiet_log.warn_rarely(
            "authentication",
            "%s failed to log in with %s: %s",
            session,
            self._mechanism,
            reason[:_LOGGED_CHARACTERS_MAX],
        )
        what = "authentication" if self._principal is None else "re-authentication"
        text = (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )

        def answer() -> None:
            if header is None:
                session.close("its login failed")
                return
            refusal = _response(ErrorCode.sasl_authentication_failed, text)
            reply.send((_frame(header, refusal),))
            hub.loop.call_later(_CLOSE_AFTER_S, session.close, "its login failed")

        hub.loop.call_later(self._policy.failure_delay_ms / 1000, answer)

    def _on_timeout(self, session: "Session") -> None:
        self._timeout = None
        if self._state is not _State.OPEN and not session.closed:
            self._hub.counters.refuse("authentication timed out")
            session.abort("it has not logged in in time")

    def _on_close(self, _: "Session") -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


def _outcome(exchange: Exchange, message: bytes) -> "bytes | AuthenticationFailed":
    try:
        return exchange.respond(message)
    except AuthenticationFailed as error:
        return error.with_traceback(None)


def _response(
    code: ErrorCode, message: str | None, auth_bytes: bytes = b"", lifetime_ms: int = 0
) -> Any:
    return newest_response_type(SASL_AUTHENTICATE_KEY)(
        error_code=code,
        error_message=message,
        auth_bytes=auth_bytes,
        session_lifetime=timedelta(milliseconds=lifetime_ms),
    )


def _frame(header: RequestHeader, response: object) -> bytes:
    return write_response(header.api_key, header.api_version, header.correlation_id, response)
