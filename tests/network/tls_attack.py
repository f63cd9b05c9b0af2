"""Wrong bytes for a TLS listener: before, during and after the handshake.

    python -m tests.network.tls_attack --connections 100000 --seed 1

A TLS client without a socket makes valid messages, which are then corrupted somewhere: garbage
instead of a hello, a flipped bit, a missing part, records of wrong types, versions and lengths, a
silence in the middle, garbage in an open tunnel. Only intact requests may get through, no
connection or buffered byte may be left, and the server must keep serving.
"""

import argparse
import asyncio
import contextlib
import gc
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import uvloop
from tests.network.attack import resident_kb
from tests.network.locked import AUTHORITY, Locked, stored
from tests.network.peer import frame

AT_ONCE, MANY = 50, 500
HANDSHAKE_MS = 1_000
WAIT_S = 120.0
CHUNK = 65_536
RECORD_TYPES = (0, 20, 21, 22, 23, 24, 128, 255)


class Report(NamedTuple):
    connections: int
    served: int  # Those whose handshake finished nevertheless.
    refused: dict[str, int]


class Tunnel:
    """The client's side of TLS, byte by byte."""

    def __init__(self, version: ssl.TLSVersion) -> None:
        context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        context.minimum_version = context.maximum_version = version
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        self.is_open = False

    def hello(self) -> bytes:
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._outgoing.read()

    def answer(self, received: bytes) -> bytes:
        """The client's reply; ssl.SSLError if `received` is invalid."""
        self._incoming.write(received)
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
            self.is_open = True
        return self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()


class Fuzzer:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def version(self) -> ssl.TLSVersion:
        return self._random.choice((ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3))

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def garbage(self) -> bytes:
        random = self._random
        match random.randrange(4):
            case 0:
                return random.randbytes(random.choice((1, 5, 100, 20_000)))
            case 1:  # The first bytes of other protocols.
                return random.choice((b"GET / HTTP/1.1\r\n\r\n", frame(b"\0\x12\0\3"), b"\0" * 64))
            case _:
                return self.record(random.randbytes(random.randrange(300)))

    def record(self, body: bytes) -> bytes:
        """With a TLS header, which may be wrong."""
        random = self._random
        head = bytes((random.choice(RECORD_TYPES), 3, random.choice((0, 1, 3, 4, 255))))
        size = len(body) if random.random() < 0.6 else random.choice((0, 1, 16_384, 18_500, 65_535))
        return head + size.to_bytes(2, "big") + body

    def spoilt(self, data: bytes) -> bytes:
        random = self._random
        changed = bytearray(data)
        match random.randrange(4):
            case 0:
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
            case 1:
                del changed[random.randrange(len(changed)) :]
            case 2:
                position = random.randrange(len(changed))
                changed[position:position] = random.randbytes(random.randrange(1, 9))
            case _:
                changed += self.garbage()
        return bytes(changed)


class Assault:
    """One connection, wrong at one random point."""

    def __init__(self, fuzzer: Fuzzer, port: int) -> None:
        self._fuzzer = fuzzer
        self._port = port
        self.is_served = False
        self.may_be_served = False

    async def run(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            with contextlib.suppress(OSError):  # The server has hung up, or TLS failed.
                await self._talk(reader, writer)
        finally:
            writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fuzzer = self._fuzzer
        if fuzzer.chance(0.3):
            return await self._end(reader, writer, fuzzer.garbage())
        tunnel = Tunnel(fuzzer.version())
        hello = tunnel.hello()
        if fuzzer.chance(0.5):
            return await self._end(reader, writer, fuzzer.spoilt(hello))
        writer.write(hello)
        reply = await self._answer(reader, tunnel)
        if not tunnel.is_open and not reply:
            return None
        self.may_be_served = True  # The handshake may finish with something behind it.
        if fuzzer.chance(0.5) and reply:
            return await self._end(reader, writer, fuzzer.spoilt(reply))
        writer.write(reply)
        while not tunnel.is_open:
            writer.write(await self._answer(reader, tunnel))
        self.is_served = True
        sealed = tunnel.encrypt(frame(b"whole"))
        return await self._end(reader, writer, fuzzer.spoilt(sealed))

    async def _answer(self, reader: asyncio.StreamReader, tunnel: Tunnel) -> bytes:
        """Reads until there is something to reply."""
        while True:
            received = await reader.read(CHUNK)
            if not received:
                raise ConnectionError
            reply = tunnel.answer(received)
            if reply or tunnel.is_open:
                return reply

    async def _end(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, last: bytes
    ) -> None:
        """Some hang up, some stay silent until the server gives up the handshake."""
        writer.write(last)
        if self.may_be_served or self._fuzzer.chance(0.7):
            writer.write_eof()
        elif self._fuzzer.chance(0.5):
            return
        while await reader.read(CHUNK):
            pass


async def attack(connections: int, seed: int, directory: Path, at_once: int = AT_ONCE) -> Report:
    """AssertionError if anything got through, was left behind or stopped serving."""
    fuzzer = Fuzzer(seed)
    served = 0
    async with Locked(stored(directory), timeout_ms=HANDSHAKE_MS, keeps=False) as locked:
        port = locked.server.endpoints[0].port
        for _ in range(0, connections, at_once):
            batch = [Assault(fuzzer, port) for _ in range(at_once)]
            async with asyncio.timeout(WAIT_S):
                await asyncio.gather(*(assault.run() for assault in batch))
            served += sum(assault.is_served for assault in batch)
        server = locked.server
        await _until(lambda: not server.sessions and not server.queued_bytes)
        assert locked.bodies <= {b"whole"}, locked.bodies
        assert server.counters.connections_open == 0
        connection = await locked.connect()
        assert await locked.exchange(connection, b"hello") == b"hello"
        return Report(connections, served, dict(server.counters.connections_refused))


async def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(attack(5_000, arguments.seed + 1, Path(directory), MANY))
        gc.collect()
        before, begun = resident_kb(), time.monotonic()
        seed, count = arguments.seed, arguments.connections
        report = runner.run(attack(count, seed, Path(directory), MANY))
        gc.collect()
        grown = resident_kb() - before
    sys.stdout.write(f"{report}\n{time.monotonic() - begun:.0f} s, memory grew by {grown} kB\n")


if __name__ == "__main__":
    main()
