import gc
import os
import weakref

from tests.kits.manual_clock import ManualClock
from tests.network.peer import (
    Answers,
    Run,
    frame,
    peer_of,
    serving,
    session_of,
    until,
    until_received,
)
from tests.ports import ReservedPort

from ottla.network.endpoints import Endpoint
from ottla.network.session import Session


def test_idle_connections_are_closed(run: Run) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with (
            serving(monotonic_ms=clock.monotonic_ms, idle_ms_max=1000) as server,
            peer_of(server) as idle,
            peer_of(server) as busy,
        ):
            await until(lambda: len(server.sessions) == 2)
            for _ in range(3):
                server.close_idle_sessions()
                clock.advance(600)
                await busy.send(frame(b"a"))
                assert await busy.receive_frame() == b"a"
            server.close_idle_sessions()
            assert await idle.receive_to_end() == b""
            await until(lambda: len(server.sessions) == 1)
            await busy.send(frame(b"b"))
            assert await busy.receive_frame() == b"b"
            assert server.counters.connections_closed_idle == 1

    run(main())


def test_a_connection_that_waits_for_us_is_not_idle(run: Run) -> None:
    clock = ManualClock()
    answers = Answers()

    async def main() -> None:
        async with (
            serving(answers, monotonic_ms=clock.monotonic_ms, idle_ms_max=1000) as server,
            peer_of(server) as peer,
        ):
            await peer.send(frame(b"a"))
            await until(lambda: answers.waiting)
            for _ in range(5):
                server.close_idle_sessions()
                clock.advance(900)
            answers.send(0)
            assert await peer.receive_frame() == b"a"

    run(main())


def test_a_peer_that_trickles_a_request_is_idle(run: Run) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with (
            serving(monotonic_ms=clock.monotonic_ms, idle_ms_max=1000) as server,
            peer_of(server) as peer,
        ):
            session = await session_of(server)
            server.close_idle_sessions()
            for count in range(1, 4):
                await peer.send(b"\0")
                await until_received(server, bytes_in=count)
                clock.advance(400)
            server.close_idle_sessions()
            await until(lambda: session.closed)

    run(main())


def test_a_peer_that_does_not_take_its_answers_is_idle(run: Run) -> None:
    clock = ManualClock()

    def flood(session: Session, body: memoryview) -> None:
        session.send_now(frame(b"x" * 10_000_000))
        session.reply()

    async def main() -> None:
        async with (
            serving(flood, monotonic_ms=clock.monotonic_ms, idle_ms_max=1000) as server,
            peer_of(server, receive_buffer=10_000) as peer,
        ):
            await peer.send(frame(b"a"))
            session = await session_of(server)
            await until(lambda: session.receiver.paused)
            server.close_idle_sessions()
            clock.advance(1001)
            server.close_idle_sessions()
            await until(lambda: not server.sessions)
            assert server.queued_bytes == 0

    run(main())


def test_stopping_lets_answers_leave_and_refuses_new_connections(run: Run) -> None:
    async def main() -> None:
        port = ReservedPort()  # Nobody else gets it once the server has stopped.
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port.number)
        async with serving(listeners=(endpoint,)) as server, peer_of(server) as peer:
            await peer.send(frame(b"a" * 1000))
            await until(lambda: server.counters.frames == 1)
            await server.stop()
            assert await peer.receive_to_end() == frame(b"a" * 1000)
            assert not server.sessions
            try:
                async with peer_of(server):
                    refused = False
            except ConnectionRefusedError:
                refused = True
            assert refused

    run(main())


def test_stopping_does_not_wait_for_a_peer_that_does_not_read(run: Run) -> None:
    def flood(session: Session, body: memoryview) -> None:
        session.send_now(frame(b"x" * 20_000_000))

    async def main() -> None:
        async with serving(flood) as server, peer_of(server, receive_buffer=10_000) as peer:
            await peer.send(frame(b"a"))
            await until(lambda: server.counters.frames == 1)
            await server.stop(grace_s=0.01)
            assert not server.sessions

    run(main())


def test_a_thousand_connections_come_and_go(run: Run) -> None:
    seen: weakref.WeakSet[Answers] = weakref.WeakSet()

    def dispatch(session: Session, body: memoryview) -> None:
        session.attachment = Answers()  # As long as it lives, the session lives.
        seen.add(session.attachment)
        session.send_now(frame(bytes(body)))

    async def main() -> None:
        async with serving(dispatch, listen_backlog=200) as server:
            descriptors = 0
            for _ in range(10):
                peers = [peer_of(server) for _ in range(100)]
                opened = [await peer.__aenter__() for peer in peers]
                for peer in opened:
                    await peer.send(frame(b"hello") * 3)
                for peer in opened:
                    assert await peer.receive(27) == frame(b"hello") * 3
                assert server.counters.connections_open == 100
                for number, peer in enumerate(opened):
                    peer.reset() if number % 2 else peer.close()
                await until(lambda: server.counters.connections_open == 0)
                descriptors = descriptors or len(os.listdir("/proc/self/fd"))
            assert server.counters.connections_accepted == 1000
            assert server.queued_bytes == 0
            await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
            gc.collect()
            assert len(seen) == 0

    run(main())
