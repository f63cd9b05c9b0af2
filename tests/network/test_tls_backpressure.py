"""With TLS, too, a connection is read again once its responses have been sent.

TLS has two buffers in a row: one for records that the plain transport does not accept yet, and the
plain transport's own. Only the first counts for the connection; the tests fill both.
"""

from pathlib import Path

import pytest
from tests.network.locked import Connection, Locked, stored
from tests.network.peer import ANYBODY, Run, frame, until

from ottla.network.answers import NOBODY, Overtakers, Reply
from ottla.network.session import Session

NETWORK = {"send_buffer_bytes": 50_000}
CLIENT_BUFFER = 50_000
FLOOD = 2_000_000  # More than all buffers on the way to a client that does not read.


class Wanted:
    """Answers each request, whose body is a size, with that many bytes when the test says so."""

    def __init__(self, overtakers: Overtakers) -> None:
        self._overtakers = overtakers
        self.waiting: list[tuple[Reply, int]] = []

    def __call__(self, session: Session, body: memoryview) -> None:
        self.waiting.append((session.reply(self._overtakers), int(bytes(body))))

    async def send(self) -> None:
        """Releases the next response and lets it get as far as it can."""
        await until(lambda: self.waiting)
        reply, size = self.waiting.pop(0)
        reply.send([frame(bytes(size))])
        answers = reply._answers
        await until(lambda: not answers._gathered)


def ask(connection: Connection, *sizes: int) -> None:
    connection[1].write(b"".join(frame(b"%d" % size) for size in sizes))


async def receive(connection: Connection, *sizes: int) -> None:
    for size in sizes:
        assert await connection[0].readexactly(4 + size) == frame(bytes(size))


@pytest.mark.parametrize("size", [1_000, 20_000, 40_000, 60_000, 80_000])
def test_a_request_held_back_is_served_when_the_answer_before_it_has_left(
    run: Run, tmp_path: Path, size: int
) -> None:
    wanted = Wanted(NOBODY)

    async def main() -> None:
        async with Locked(stored(tmp_path), dispatch=wanted, network=NETWORK) as locked:
            connection = await locked.connect(receive_buffer=CLIENT_BUFFER)
            ask(connection, FLOOD, size, 1)
            await wanted.send()
            await wanted.send()
            await receive(connection, FLOOD, size)
            await wanted.send()
            await receive(connection, 1)
            await until(lambda: not locked.server.queued_bytes)

    run(main())


@pytest.mark.parametrize("size", [1_000, 20_000, 40_000, 60_000, 80_000])
def test_reading_goes_on_after_too_many_unsent_bytes_whatever_the_size_of_the_last_answer(
    run: Run, tmp_path: Path, size: int
) -> None:
    wanted = Wanted(ANYBODY)

    async def main() -> None:
        async with Locked(stored(tmp_path), dispatch=wanted, network=NETWORK) as locked:
            connection = await locked.connect(receive_buffer=CLIENT_BUFFER)
            ask(connection, FLOOD, FLOOD, size)
            await until(lambda: len(wanted.waiting) == 3)
            for _ in range(3):
                await wanted.send()
            (session,) = locked.server.sessions
            assert session.receiver.paused
            await receive(connection, FLOOD, FLOOD, size)
            await until(lambda: not session.receiver.paused)
            ask(connection, 1)
            await wanted.send()
            await receive(connection, 1)
            await until(lambda: not locked.server.queued_bytes)

    run(main())


def test_a_small_bound_of_unsent_bytes_holds_and_ends(run: Run, tmp_path: Path) -> None:
    wanted = Wanted(ANYBODY)

    async def main() -> None:
        network = {**NETWORK, "unsent_bytes_max": 1_000}
        async with Locked(stored(tmp_path), dispatch=wanted, network=network) as locked:
            connection = await locked.connect(receive_buffer=CLIENT_BUFFER)
            ask(connection, FLOOD, 2_000)
            await wanted.send()
            await wanted.send()
            (session,) = locked.server.sessions
            assert session.receiver.paused
            await receive(connection, FLOOD, 2_000)
            await until(lambda: not session.receiver.paused)

    run(main())
