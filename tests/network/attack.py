"""Fuzzed frames before and during a login, on real connections.

    python -m tests.network.attack --frames 1000000 --seed 1

The bytes look like a login at first, and then are wrong somewhere: sizes, keys, versions,
mechanisms, SASL messages, single bits. Nothing but ApiVersions may get through, no connection or
buffered byte may be left, and the server must keep serving.
"""

import argparse
import asyncio
import contextlib
import resource
import struct
import sys
import time
from random import Random
from typing import NamedTuple

from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from tests.network.peer import peer_of
from tests.network.test_sasl_gate import MECHANISMS, Served, locked, say, shake

from ottla.protocol.codec import write_request
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import API_VERSIONS_KEY
from ottla.security.plain import plain_message
from ottla.security.principal import ANONYMOUS

CONNECTIONS_AT_ONCE = 50
FRAMES_PER_CONNECTION = 8
WAIT_S = 120.0
PLAIN_SHARE = 0.02  # Each costs thousands of hashes.

SCRAM_MESSAGES = (
    b"n,,n=alice,r=abc",
    b"n,,n=alice,r=abc,tokenauth=true",
    b"y,a=alice,n=alice,r=abc",
    b"p=tls-unique,,n=alice,r=abc",
    b"c=biws,r=abc,p=" + b"A" * 44,
    b"n,,n=" + b"a" * 60_000 + b",r=abc",
    b"n,,n=alice,r=" + b"," * 1_000,
    b"",
    b"\0" * 64,
)


class Report(NamedTuple):
    sent: int
    dispatched: int  # Whole frames that the server handled.
    connections: int
    refused: dict[str, int]


class Fuzzer:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def connection(self) -> list[bytes]:
        """The frames of one connection."""
        random = self._random
        is_plain = random.random() < PLAIN_SHARE
        mechanism = "PLAIN" if is_plain else random.choice(MECHANISMS[:2])
        frames = [_frame(ApiVersionsRequest, 18, 4)] if random.random() < 0.2 else []
        if random.random() < 0.8:
            version = random.choice((0, 1, 1, 1))
            frames.append(_frame(SaslHandshakeRequest, 17, version, mechanism=mechanism))
        count = random.randint(1, FRAMES_PER_CONNECTION)
        frames += [self._frame(is_plain=is_plain) for _ in range(count)]
        return [self._spoilt(frame) if random.random() < 0.3 else frame for frame in frames]

    def _frame(self, *, is_plain: bool) -> bytes:
        random = self._random
        match random.randrange(6):
            case 0:
                body = random.randbytes(random.choice((0, 1, 3, 8, 20, 200)))
                return struct.pack(">I", len(body)) + body
            case 1:  # A wrong size.
                size = random.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**31, 600_000))
                return struct.pack(">I", size) + random.randbytes(random.randrange(20))
            case 2:  # Another API, before the login.
                key = random.choice((0, 1, 3, 19, 36, 51, 58, 62, 10_000, -1, 32_767))
                body = struct.pack(">hhi", key, random.randrange(-1, 6), 7) + random.randbytes(30)
                return struct.pack(">I", len(body)) + body
            case 3:
                name = random.choice((*MECHANISMS, "GSSAPI", "", "x" * 30_000))
                return _frame(SaslHandshakeRequest, 17, 1, mechanism=name)
            case _:
                message = self._message(is_plain=is_plain)
                return _frame(SaslAuthenticateRequest, 36, random.randrange(3), auth_bytes=message)

    def _message(self, *, is_plain: bool) -> bytes:
        random = self._random
        if is_plain:
            user, password = random.choice((("alice", "x"), ("nobody", "\0"), ("", ""), ("a", "b")))
            return plain_message(user, password)
        message = random.choice(SCRAM_MESSAGES)
        return self._spoilt(message) if message and random.random() < 0.5 else message

    def _spoilt(self, data: bytes) -> bytes:
        random = self._random
        changed = bytearray(data)
        match random.randrange(3):
            case 0:
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
            case 1:
                del changed[random.randrange(len(changed)) :]
            case _:
                position = random.randrange(len(changed))
                changed[position:position] = random.randbytes(random.randrange(1, 9))
        return bytes(changed)


def _frame(kind: type, key: int, version: int, **values: object) -> bytes:
    if kind is ApiVersionsRequest:
        values = {"client_software_name": "attack", "client_software_version": "1"}
    return write_request(key, version, 7, "attack", kind(**values))


async def attack(frames: int, seed: int) -> Report:
    """AssertionError if anything got through, was left behind or stopped serving."""
    fuzzer = Fuzzer(seed)
    sent = connections = 0
    async with locked(failure_delay_ms=0) as served:
        while sent < frames:
            batch = [fuzzer.connection() for _ in range(CONNECTIONS_AT_ONCE)]
            await asyncio.gather(*(_assault(served, frames_sent) for frames_sent in batch))
            sent += sum(map(len, batch))
            connections += len(batch)
            for principal, may_act_as_node, body in served.came:
                assert principal == ANONYMOUS, body
                assert not may_act_as_node
                assert int.from_bytes(body[:2], "big") == API_VERSIONS_KEY, body
            served.came.clear()
        await _until_gone(served)
        async with peer_of(served.server) as peer:
            await shake(peer, "PLAIN")
            answer = await say(peer, plain_message("alice", "alice's"))
            assert answer.error_code is ErrorCode.none
        counters = served.server.counters
        return Report(sent, counters.frames, connections, dict(counters.connections_refused))


async def _assault(served: Served, frames: list[bytes]) -> None:
    async with peer_of(served.server) as peer:
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            await peer.send(b"".join(frames))
            peer.close_half()
            await peer.receive_to_end()


async def _until_gone(served: Served) -> None:
    server = served.server
    deadline = time.monotonic() + WAIT_S
    while server.sessions or server.queued_bytes:
        assert time.monotonic() < deadline, (server.sessions, server.queued_bytes)
        await asyncio.sleep(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(attack(10_000, arguments.seed + 1))  # One-time imports and caches.
    before = resident_kb()
    begun = time.monotonic()
    report = asyncio.run(attack(arguments.frames, arguments.seed))
    grown = resident_kb() - before
    sys.stdout.write(f"{report}\n{time.monotonic() - begun:.0f} s, memory grew by {grown} kB\n")


def resident_kb() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


if __name__ == "__main__":
    main()
