"""The part of AMQP 0-9-1 that loads need: one connection and channel, publish, consume, ack."""

import asyncio
import struct
from typing import NamedTuple, Self

from benchmarks.loads.frames import LoadError

METHOD, HEADER, BODY = 1, 2, 3
START, TUNE, OPENED = (10, 10), (10, 30), (10, 41)
CHANNEL_OPENED, DECLARED, QOS_SET, CONSUMING = (20, 11), (50, 11), (60, 11), (60, 21)
CONFIRMED, CONFIRMING, DELIVERED = (60, 80), (85, 11), (60, 60)
PERSISTENT = 2
SILENCE_SECONDS_MAX = 120.0

_FRAME = struct.Struct(">BHI")
_IDS = struct.Struct(">HH")
_END = b"\xce"
_NO_TABLE = bytes(4)


class Frame(NamedTuple):
    kind: int
    payload: bytes

    @property
    def method(self) -> tuple[int, int]:
        class_id, method_id = _IDS.unpack_from(self.payload)
        return class_id, method_id


class Channel:
    """Made by `open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: str, queue: str) -> Self:
        """Connects and declares a durable queue of that name."""
        host, _, port = address.rpartition(":")
        channel = cls(*await asyncio.open_connection(host, int(port), limit=1 << 20))
        channel.write(b"AMQP\x00\x00\x09\x01")
        await channel.expect(START)
        login = b"\x00guest\x00guest"
        answer = _NO_TABLE + _short("PLAIN") + struct.pack(">I", len(login)) + login
        channel.write(_method(0, (10, 11), answer + _short("en_US")))
        limits = (await channel.expect(TUNE)).payload[4:]
        channel.write(_method(0, (10, 31), limits[:6] + bytes(2)))  # Without heartbeats.
        channel.write(_method(0, (10, 40), _short("/") + _short("") + b"\x00"))
        await channel.expect(OPENED)
        channel.write(_method(1, (20, 10), _short("")))
        await channel.expect(CHANNEL_OPENED)
        channel.write(_method(1, (50, 10), bytes(2) + _short(queue) + b"\x02" + _NO_TABLE))
        await channel.expect(DECLARED)
        return channel

    async def confirm_publications(self) -> None:
        self.write(_method(1, (85, 10), b"\x00"))
        await self.expect(CONFIRMING)

    async def consume(self, queue: str, prefetch: int) -> None:
        self.write(_method(1, (60, 10), struct.pack(">IHB", 0, prefetch, 0)))
        await self.expect(QOS_SET)
        self.write(
            _method(1, (60, 20), bytes(2) + _short(queue) + _short("") + b"\x00" + _NO_TABLE)
        )
        await self.expect(CONSUMING)

    async def delivery(self) -> int:
        """Reads the next message; returns its tag."""
        payload = (await self.expect(DELIVERED)).payload
        at = _IDS.size + 1 + payload[_IDS.size]
        header = await self.frame()
        (left,) = struct.unpack_from(">Q", header.payload, 4)
        while left > 0:
            left -= len((await self.frame()).payload)
        tag: int = struct.unpack_from(">Q", payload, at)[0]
        return tag

    def acknowledge(self, tag: int) -> None:
        """Acknowledges that message and all before it."""
        self.write(_method(1, (60, 80), struct.pack(">QB", tag, 1)))

    async def expect(self, method: tuple[int, int]) -> Frame:
        frame = await self.frame()
        if frame.kind != METHOD or frame.method != method:
            raise LoadError(f"{method} was expected, not {frame.payload[:200]!r}")
        return frame

    async def frame(self) -> Frame:
        async with asyncio.timeout(SILENCE_SECONDS_MAX):
            kind, _, size = _FRAME.unpack(await self._reader.readexactly(_FRAME.size))
            return Frame(kind, (await self._reader.readexactly(size + 1))[:-1])

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


def publication(queue: str, body: bytes) -> bytes:
    """Publishes a persistent message."""
    method = _method(1, (60, 40), bytes(2) + _short("") + _short(queue) + b"\x00")
    header = struct.pack(">HHQHB", 60, 0, len(body), 0x1000, PERSISTENT)
    return method + _frame(HEADER, 1, header) + _frame(BODY, 1, body)


def _method(channel: int, ids: tuple[int, int], arguments: bytes) -> bytes:
    return _frame(METHOD, channel, _IDS.pack(*ids) + arguments)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _FRAME.pack(kind, channel, len(payload)) + payload + _END


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()
