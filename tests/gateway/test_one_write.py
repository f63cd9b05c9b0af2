"""Data written in one turn of the loop is sent in one write."""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.gateway.one_write import Gathering


class Transport:
    def __init__(self) -> None:
        self.writes: list[Any] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.writes.append("closed")


def writes_of(write: Callable[[Gathering], None]) -> list[Any]:
    async def run() -> list[Any]:
        transport = Transport()
        write(Gathering(transport, asyncio.get_running_loop()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        return transport.writes

    return asyncio.run(run())


def test_head_and_body_leave_together() -> None:
    def write(gathering: Gathering) -> None:
        gathering.write(b"head")
        gathering.write(b"")
        gathering.write(b"body")

    assert writes_of(write) == [b"headbody"]


def test_everything_is_written_before_the_end() -> None:
    def write(gathering: Gathering) -> None:
        gathering.write(b"answer")
        gathering.close()

    assert writes_of(write) == [b"answer", "closed"]


def test_much_is_not_held_back() -> None:
    chunk = bytes(50_000)

    def write(gathering: Gathering) -> None:
        for _ in range(4):
            gathering.write(chunk)
        gathering.write(b"rest")

    assert writes_of(write) == [2 * chunk, 2 * chunk, b"rest"]
