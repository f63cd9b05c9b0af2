"""Only the APIs that a pending request permits may overtake it."""

import struct

import pytest
from tests.kits.manual_clock import ManualClock
from tests.network.peer import Run, frame, peer_of, serving, session_of, until

from ottla.network.session import NOBODY, Overtakers, Reply, Session
from ottla.network.session_hub import RECEIVE_BUFFER_BYTES

READ, WRITE, LOOKUP = 0, 1, 2
WRITES = frozenset({WRITE})


def request(key: int, content: bytes = b"") -> bytes:
    return frame(struct.pack(">h", key) + content)


class Broker:
    """Reads and writes are answered when the test says so, lookups at once."""

    def __init__(self) -> None:
        self.waiting: list[Reply] = []
        self.seen: list[int] = []

    def __call__(self, session: Session, body: memoryview) -> None:
        key = int.from_bytes(body[:2], "big")
        self.seen.append(key)
        if key == LOOKUP:
            session.send_now(frame(b"%d" % key))
        else:
            overtakers: Overtakers = WRITES if key == WRITE else NOBODY
            self.waiting.append(session.reply(overtakers))

    def answer(self, index: int = 0) -> None:
        self.waiting.pop(index).send([frame(b"a")])


@pytest.mark.parametrize("second", [READ, LOOKUP, WRITE])
def test_a_request_waits_for_the_one_before_it(run: Run, second: int) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(request(READ) + request(second))
            await until(lambda: session.receiver.paused)
            assert broker.seen == [READ]
            broker.answer()
            await until(lambda: broker.seen == [READ, second])
            await until(lambda: not session.receiver.paused)
            assert await peer.receive_frame() == b"a"

    run(main())


def test_what_cannot_be_told_apart_overtakes(run: Run) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(request(WRITE) * 3 + request(LOOKUP) + request(WRITE))
            await until(lambda: session.receiver.paused)
            assert broker.seen == [WRITE] * 3
            broker.answer(2)
            broker.answer(1)
            assert session.receiver.paused
            broker.answer()
            await until(lambda: broker.seen == [WRITE, WRITE, WRITE, LOOKUP, WRITE])
            for body in (b"a", b"a", b"a", b"2"):
                assert await peer.receive_frame() == body

    run(main())


def test_a_request_that_comes_later_waits_too(run: Run) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(request(WRITE))
            await until(lambda: broker.seen == [WRITE])
            assert not session.receiver.paused
            await peer.send(request(LOOKUP))
            await until(lambda: session.receiver.paused)
            broker.answer()
            assert await peer.receive_frame() == b"a"
            assert await peer.receive_frame() == b"2"

    run(main())


@pytest.mark.parametrize("size", [20_000, RECEIVE_BUFFER_BYTES, 3_000_000])
def test_a_large_request_waits_whole(run: Run, size: int) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(request(WRITE))
            await until(lambda: broker.seen == [WRITE])
            await peer.send(request(READ, bytes(size)))
            await until(lambda: session.receiver.paused)
            assert session.receiver.held_bytes >= size
            broker.answer()
            await until(lambda: broker.seen == [WRITE, READ])
            await peer.send(request(LOOKUP))
            await until(lambda: session.receiver.paused)
            broker.answer()
            for body in (b"a", b"a", b"2"):
                assert await peer.receive_frame() == body
            await until(lambda: session.receiver.held_bytes == 0)
            assert server.queued_bytes == 0

    run(main())


def test_more_than_fits_the_buffer_is_taken_in_order(run: Run) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            rounds = 5
            stream = (request(READ, bytes(40_000)) + request(LOOKUP, bytes(40_000))) * rounds
            sent = peer.send_what_fits(stream)
            for _ in range(rounds):
                await until(lambda: broker.waiting)
                assert broker.seen[-1] == READ
                assert session.receiver.held_bytes <= 2 * RECEIVE_BUFFER_BYTES
                broker.answer()
                assert await peer.receive_frame() == b"a"
                await peer.send(stream[sent:])
                sent = len(stream)
                assert await peer.receive_frame() == b"2"
            assert broker.seen == [READ, LOOKUP] * rounds

    run(main())


def test_an_answer_that_begins_to_let_others_pass(run: Run) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(request(READ) + request(WRITE) + request(LOOKUP))
            await until(lambda: session.receiver.paused)
            broker.waiting[0].let_pass(WRITES)
            await until(lambda: broker.seen == [READ, WRITE])
            await until(lambda: session.receiver.paused)
            broker.answer()
            broker.answer()
            await until(lambda: broker.seen == [READ, WRITE, LOOKUP])

    run(main())


def test_a_peer_that_closed_its_half_gets_the_answers_to_what_waited(run: Run) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(request(READ) + request(LOOKUP))
            peer.close_half()
            await until(lambda: session.receiver.paused)
            broker.answer()
            assert await peer.receive_to_end() == frame(b"a") + frame(b"2")
            await until(lambda: not server.sessions)

    run(main())


def test_a_connection_that_ends_while_a_request_waits_gives_everything_back(run: Run) -> None:
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(request(READ) + request(READ, bytes(100_000)))
            await until(lambda: session.receiver.paused)
            session.abort("the test ends it")
            await until(lambda: not server.sessions)
            broker.answer()
            assert server.queued_bytes == 0
            assert server.counters.sessions_paused == 0
            assert broker.seen == [READ]

    run(main())


def test_a_connection_whose_request_waits_is_not_idle(run: Run) -> None:
    broker = Broker()
    clock = ManualClock()

    async def main() -> None:
        async with (
            serving(broker, monotonic_ms=clock.monotonic_ms, idle_ms_max=1000) as server,
            peer_of(server) as peer,
        ):
            session = await session_of(server)
            await peer.send(request(READ) + request(LOOKUP))
            await until(lambda: session.receiver.paused)
            for _ in range(5):
                clock.advance(900)
                server.close_idle_sessions()
            assert not session.closed
            broker.answer()
            assert await peer.receive_frame() == b"a"
            assert await peer.receive_frame() == b"2"

    run(main())


@pytest.mark.parametrize("body", [b"", b"\0"])
def test_a_request_too_short_for_a_key_waits_like_any_other(run: Run, body: bytes) -> None:
    """Even if it ends with the receive buffer."""
    broker = Broker()

    async def main() -> None:
        async with serving(broker) as server, peer_of(server) as peer:
            session = await session_of(server)
            rest = RECEIVE_BUFFER_BYTES - len(request(READ)) - len(frame(body))
            stream = request(READ) + request(READ, bytes(rest - len(request(READ)))) + frame(body)
            assert len(stream) == RECEIVE_BUFFER_BYTES
            session.receiver.get_buffer(-1)[:] = stream
            session.receiver.buffer_updated(len(stream))
            for _ in range(2):
                await until(lambda: broker.waiting)
                broker.answer()
                assert await peer.receive_frame() == b"a"
            await until(lambda: len(broker.seen) == 3)

    run(main())


def test_a_request_that_waits_does_not_keep_the_overdraft(run: Run) -> None:
    broker = Broker()

    async def main() -> None:
        async with (
            serving(broker, queued_bytes_max=100_000) as server,
            peer_of(server) as one,
            peer_of(server) as two,
        ):
            await one.send(request(READ) + request(READ, bytes(200_000)))
            await until(lambda: server.queued_bytes > 100_000)
            await two.send(request(LOOKUP, bytes(300_000)))
            assert await two.receive_frame() == b"2"
            broker.answer()
            await until(lambda: broker.waiting)
            broker.answer()
            await until(lambda: server.queued_bytes == 0)

    run(main())
