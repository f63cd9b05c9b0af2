"""Authentication of requests: the only place where it is decided.

Without `--auth` everyone is the gateway's own user at the brokers. With `--auth basic` a request
carries the name and password of a broker user (HTTP Basic). The gateway logs in as that user, over
connections of that user's own, so that the brokers themselves decide what it may do: 401 if the
login fails, 403 if something is not permitted. SQS clients sign their requests instead
(`aws_signatures`), which works for users whose passwords the gateway was given.

unknown -> logging in -> known    for LOGIN_S_MAX, then the password is checked again
                      -> refused  for REFUSED_S, in which the same password is not tried again
known   -> gone                   after IDLE_S without a request, or to make room for another user
"""

import asyncio
import base64
import datetime as dt
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from starlette.requests import Request

from ottla.client.wire.errors import NotAuthenticated, WireError
from ottla.gateway.api.bodies import read_body
from ottla.gateway.api.parameters import HEADERS
from ottla.gateway.aws_signatures import InvalidSignature, SignedRequest, is_signed, signer_of
from ottla.gateway.core.access import Access
from ottla.gateway.core.errors import TooBusy
from ottla.gateway.problems import Problem
from ottla.gateway.services import Services

LOGIN_S_MAX: Final = 300.0
IDLE_S: Final = 600.0
REFUSED_S: Final = 10.0
REFUSED_MAX: Final = 10_000
LOGINS_AT_ONCE: Final = 4  # A login deliberately costs some milliseconds of processor time.
_SWEEP_S: Final = 30.0


class Credentials(NamedTuple):
    name: str
    password: str


def basic_credentials(headers: Mapping[bytes, bytes]) -> Credentials | None:
    """From the Authorization header; None if there are none or they are unreadable."""
    scheme, _, encoded = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return None
    name, colon, password = text.partition(":")
    return Credentials(name, password) if colon and name else None


@dataclass(eq=False, slots=True)
class _User:
    services: Services
    requests: int = 0  # In progress.
    used_at_s: float = field(default_factory=time.monotonic)
    checked_at_s: float = 0.0


class Users:
    """Logged-in users, each with services of its own."""

    def __init__(
        self,
        own: Services,
        access: Access,
        users_max: int,
        signers: Mapping[str, str] | None = None,
    ) -> None:
        """`own` serves the gateway's user; `signers` maps users who sign to their passwords."""
        self._own = own
        self._signers = signers or {}
        self._access = access
        self._users_max = users_max
        self._users: dict[bytes, _User] = {}
        self._refused: dict[bytes, float] = {}  # When each was refused.
        self._key = secrets.token_bytes(32)
        self._logins = asyncio.Semaphore(LOGINS_AT_ONCE)
        self._logging_in: dict[bytes, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._sweeper = asyncio.create_task(self._sweep(), name="idle users")

    def __len__(self) -> int:
        return len(self._users)

    @asynccontextmanager
    async def enter(self, request: Request) -> AsyncIterator[Services]:
        """The services of the request's user. Raises Problem 401 without a valid login.

        Raises InvalidSignature for an invalid signature.
        """
        headers = request.scope[HEADERS]
        credentials = basic_credentials(headers)
        if self._signers and is_signed(headers) and request.scope["type"] == "http":
            credentials = await self._signer(request, headers)
        if credentials is None:
            raise self._unauthorized("Name a user of the brokers and its password (HTTP Basic).")
        digest = self._digest(credentials)
        user = self._users.get(digest)
        if user is None or time.monotonic() - user.checked_at_s > LOGIN_S_MAX:
            user = await self._log_in(digest, credentials)
        user.requests += 1
        try:
            yield user.services
        finally:
            user.requests -= 1
            user.used_at_s = time.monotonic()

    async def _signer(self, request: Request, headers: Mapping[bytes, bytes]) -> Credentials:
        scope = request.scope
        signed = SignedRequest(
            request.method,
            scope.get("raw_path", b"").decode("latin-1"),
            scope["query_string"].decode("latin-1"),
            headers,
            await read_body(request),
        )
        try:
            name = signer_of(signed, self._signers, dt.datetime.now(dt.UTC))
        except InvalidSignature:
            self._own.counts.logins_refused += 1
            raise
        return Credentials(name, self._signers[name])

    async def close(self) -> None:
        self._sweeper.cancel()
        for digest in list(self._users):
            self._drop(digest)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _digest(self, credentials: Credentials) -> bytes:
        """Passwords are not stored in clear, except in the services that log in with them."""
        text = "\0".join(credentials).encode("utf-8", "surrogatepass")
        return blake2b(text, key=self._key, digest_size=32).digest()

    async def _log_in(self, digest: bytes, credentials: Credentials) -> _User:
        if time.monotonic() - self._refused.get(digest, -REFUSED_S) < REFUSED_S:
            raise self._unauthorized("The brokers do not know this user and password.")
        lock = self._logging_in.setdefault(digest, asyncio.Lock())
        try:
            async with lock, self._logins:
                return await self._check(digest, self._access.as_user(*credentials))
        finally:
            if not lock.locked():
                self._logging_in.pop(digest, None)

    async def _check(self, digest: bytes, access: Access) -> _User:
        user = self._users.get(digest)
        if user is not None and time.monotonic() - user.checked_at_s <= LOGIN_S_MAX:
            return user  # Another request has just checked.
        try:
            async with access.cluster() as cluster:
                await cluster.any_broker()
        except NotAuthenticated as error:
            if len(self._refused) >= REFUSED_MAX:
                self._refused.clear()
            self._refused[digest] = time.monotonic()
            self._drop(digest)
            raise self._unauthorized("The brokers do not know this user and password.") from error
        except WireError:
            if user is None:
                raise
        user = self._users.get(digest)  # May have logged in meanwhile.
        if user is None:
            self._make_room()
            user = self._users[digest] = _User(Services(self._own.settings, access, self._own))
            self._own.counts.users = len(self._users)
        user.checked_at_s = time.monotonic()
        return user

    def _make_room(self) -> None:
        """Raises TooBusy if every user has requests in progress."""
        if len(self._users) < self._users_max:
            return
        idle = [
            (user.used_at_s, digest) for digest, user in self._users.items() if not user.requests
        ]
        if not idle:
            raise TooBusy(f"{self._users_max} users are served already")
        self._drop(min(idle)[1])

    def _drop(self, digest: bytes) -> None:
        user = self._users.pop(digest, None)
        if user is not None:
            self._own.counts.users = len(self._users)
            task = asyncio.create_task(user.services.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _sweep(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(_SWEEP_S)
                now_s = time.monotonic()
                for digest, user in list(self._users.items()):
                    if not user.requests and now_s - user.used_at_s > IDLE_S:
                        self._drop(digest)

    def _unauthorized(self, detail: str) -> Problem:
        self._own.counts.logins_refused += 1
        challenge = 'Basic realm="ottla", charset="UTF-8"'
        return Problem(401, detail, headers={"WWW-Authenticate": challenge})
