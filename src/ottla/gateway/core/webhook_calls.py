"""HTTP calls to addresses that someone else chose.

One request, one connection, and only the head of the answer is read. The name is resolved here and
the connection made to an address that was checked, so a name that resolves differently a moment
later reaches nothing else. Redirects are not followed: a 3xx is an answer like any other.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from ottla.gateway.core.addresses import Network, may_call
from ottla.gateway.core.counts import Counts

URL_LENGTH_MAX = 2048
HEAD_BYTES_MAX = 32 * 1024
BODY_BYTES_MAX = 64 * 1024
TIMEOUT_S = 15.0
BODY_TIMEOUT_S = 1.0
RETRY_AFTER_S_MAX = 24 * 3600

_PORTS = {"http": 80, "https": 443}


class CallFailed(Exception):
    """No answer: no connection, a broken one, or a timeout."""


class AddressRefused(CallFailed):
    """The name resolves only to addresses that must not be called."""


class Url(NamedTuple):
    scheme: str
    host: str  # As in a certificate: ASCII, an IPv6 address without brackets.
    port: int
    target: str  # Path and query.

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class WebhookAnswer(NamedTuple):
    status: int
    retry_after_s: int | None = None  # If given in seconds.


def parse_url(text: str) -> Url:
    """Raises ValueError with the reason."""
    if len(text) > URL_LENGTH_MAX:
        raise ValueError(f"the URL has more than {URL_LENGTH_MAX} characters")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("the URL holds characters that are to be percent-encoded")
    parts = urlsplit(text)
    if parts.scheme not in _PORTS:
        raise ValueError("the URL begins with https:// or http://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL holds a user name; nothing would keep its password secret")
    if parts.fragment:
        raise ValueError("the URL has a fragment (#), which is never sent")
    if not parts.hostname:
        raise ValueError("the URL has no host")
    port = parts.port  # Raises ValueError for an invalid port.
    if port == 0:
        raise ValueError("the URL has port 0")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], target)


class Caller:
    def __init__(
        self,
        allowed: Sequence[Network] = (),
        *,
        timeout_s: float = TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
        counts: Counts | None = None,
    ) -> None:
        self._allowed = allowed
        self._counts = counts or Counts()
        self._timeout_s = timeout_s
        self._tls = tls

    @property
    def rules(self) -> str:
        """Equal for callers that may call the same addresses; empty by default."""
        return ",".join(sorted({str(network) for network in self._allowed}))

    async def post(self, url: Url, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        outcome = "failed"
        try:
            answer = await self._answer(url, headers, body)
            outcome = f"{answer.status // 100}xx"
            return answer
        finally:
            self._counts.webhook_calls[outcome] += 1

    async def _answer(self, url: Url, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(url, headers, body)
        except TimeoutError:
            raise CallFailed(f"no answer from {url.authority} in {self._timeout_s:g} s") from None
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise CallFailed(f"no answer from {url.authority}: {reason}") from None

    async def addresses(self, url: Url) -> list[str]:
        """The addresses that may be called. Raises AddressRefused if there are none."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise CallFailed(f"the name {url.host} cannot be resolved: {error}") from None
        addresses = [str(item[4][0]) for item in found]
        callable_ones = [item for item in addresses if may_call(item, self._allowed)]
        if not callable_ones:
            raise AddressRefused(
                f"{url.host} is {addresses[0] if addresses else 'no address'}, which is not on the"
                " public internet; an operator can allow its network with --webhook-allow"
            )
        return callable_ones

    async def _post(self, url: Url, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        reader, writer = await self._connect(url)
        try:
            lines = [
                f"POST {url.target} HTTP/1.1",
                f"host: {url.authority}",
                "user-agent: ottla-gateway",
                f"content-length: {len(body)}",
                "connection: close",
                *(f"{name}: {value}" for name, value in headers.items()),
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
            # The answer may come before the whole request has been sent.
            answer = await _read_answer(reader)
            await _let_it_finish(reader)
            return answer
        finally:
            writer.transport.abort()

    async def _connect(self, url: Url) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        problem: OSError | None = None
        for address in await self.addresses(url):
            try:
                reader, writer = await asyncio.open_connection(
                    address,
                    url.port,
                    limit=HEAD_BYTES_MAX,
                    ssl=self._context() if url.scheme == "https" else None,
                    server_hostname=url.host if url.scheme == "https" else None,
                )
            except OSError as error:
                problem = error
                continue
            peer = str(writer.get_extra_info("peername")[0])
            if not may_call(peer, self._allowed):
                writer.transport.abort()
                raise AddressRefused(f"{url.host} resolved to {peer}")
            return reader, writer
        assert problem is not None
        raise problem

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


async def _read_answer(reader: asyncio.StreamReader) -> WebhookAnswer:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise ValueError("the answer is not HTTP")
        status = int(rest[:3])
        if status >= 200:
            return WebhookAnswer(status, _retry_after(lines))


async def _let_it_finish(reader: asyncio.StreamReader) -> None:
    """Some servers take being cut off in their answer for a failure."""
    remaining = BODY_BYTES_MAX
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while remaining > 0 and (data := await reader.read(remaining)):
                remaining -= len(data)


def _retry_after(lines: Sequence[str]) -> int | None:
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip().lower() == "retry-after" and value.strip().isdecimal():
            return min(int(value), RETRY_AFTER_S_MAX)
    return None
