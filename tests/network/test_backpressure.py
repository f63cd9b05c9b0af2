"""Memory is bounded per connection and in total."""

import asyncio

import pytest
from tests.network.peer import Answers, Peer, Run, frame, peer_of, serving, session_of, until

from ottla.network.answers import GATHERED_BYTES_MAX
from ottla.network.session import Session
from ottla.network.session_hub import RECEIVE_BUFFER_BYTES, Dispatch

ANSWER = frame(b"a" * 50_000)


def answer_at_once(session: Session, body: memoryview) -> None:
    session.send_now(ANSWER)


def answer_by_reply(session: Session, body: memoryview) -> None:
    session.reply().send([ANSWER[:9], ANSWER[9:]])


@pytest.mark.parametrize("dispatch", [answer_at_once, answer_by_reply])
def test_a_slow_reader_stays_bounded(run: Run, dispatch: Dispatch) -> None:
    async def main() -> None:
        bound = 200_000 + GATHERED_BYTES_MAX + len(ANSWER) + RECEIVE_BUFFER_BYTES
        async with (
            serving(dispatch, unsent_bytes_max=200_000, send_buffer_bytes=50_000) as server,
            peer_of(server, receive_buffer=50_000) as peer,
        ):
            session = await session_of(server)
            sent = peer.send_what_fits(frame(b"r") * 2000)
            await until(lambda: session.receiver.paused)
            assert session.receiver.held_bytes <= bound
            assert server.counters.frames < 100
            for _ in range(2000):
                if sent < 10_000:
                    sent += peer.send_what_fits((frame(b"r") * 2000)[sent:])
                assert await peer.receive(len(ANSWER)) == ANSWER
                assert session.receiver.held_bytes <= bound
            await until(lambda: session.receiver.held_bytes == 0)
            assert not session.receiver.paused
            assert server.counters.pauses > 1
            assert server.counters.sessions_paused == 0
            assert server.queued_bytes == 0

    run(main())


def test_reading_pauses_when_too_many_requests_wait(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers, pending_requests_max=10) as server, peer_of(server) as peer:
            session = await session_of(server)
            bodies = [b"%d" % number for number in range(35)]
            await peer.send(b"".join(map(frame, bodies)))
            await until(lambda: session.receiver.paused)
            assert len(answers.waiting) == 10
            for _ in range(4):
                answers.send(0)
            assert session.receiver.paused
            answers.send(0)
            await until(lambda: len(answers.waiting) == 10)
            answered: list[bytes] = []
            while len(answered) < len(bodies):
                answers.send_all()
                answered.append(await peer.receive_frame())
            assert answered == bodies
            assert not session.receiver.paused

    run(main())


def test_a_bound_of_one_request_still_serves_all(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers, pending_requests_max=1) as server, peer_of(server) as peer:
            await peer.send(b"".join(frame(b"%d" % number) for number in range(20)))
            for number in range(20):
                await until(lambda: answers.waiting)
                assert len(answers.waiting) == 1
                answers.send(0)
                assert await peer.receive_frame() == b"%d" % number

    run(main())


def test_reading_pauses_when_the_waiting_requests_are_large(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with (
            serving(answers, pending_request_bytes_max=100_000) as server,
            peer_of(server) as peer,
        ):
            session = await session_of(server)
            peer.send_what_fits(frame(b"r" * 10_000) * 30)
            await until(lambda: session.receiver.paused)
            assert len(answers.waiting) == 11
            assert session.receiver.held_bytes <= 110_000 + RECEIVE_BUFFER_BYTES
            for _ in range(6):
                answers.send(0)
            await until(lambda: len(answers.waiting) > 5)

    run(main())


def test_answers_that_wait_for_an_earlier_one_are_counted(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers, unsent_bytes_max=50_000) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(frame(b"r" * 10_000) * 8)
            await until(lambda: len(answers.waiting) == 8)
            for _ in range(7):
                answers.send(1)
            assert session.receiver.paused
            answers.send(0)
            assert await peer.receive(8 * 10_004) == frame(b"r" * 10_000) * 8
            await until(lambda: not session.receiver.paused)

    run(main())


def test_all_connections_together_stay_bounded(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with (
            serving(answers, queued_bytes_max=100_000) as server,
            peer_of(server) as one,
            peer_of(server) as two,
        ):
            await one.send(frame(b"1" * 200_000))
            await until(lambda: len(answers.waiting) == 1)
            assert server.queued_bytes > 100_000
            await two.send(frame(b"2" * 1000) * 100)
            await until(lambda: server.counters.sessions_paused == 2)
            assert server.queued_bytes < 210_000
            while True:
                answers.send_all()
                if server.counters.frames == 101:
                    break
                await until(lambda: answers.waiting)
            assert await one.receive_frame() == b"1" * 200_000
            assert await two.receive(100_400) == frame(b"2" * 1000) * 100
            await until(lambda: server.queued_bytes == 0 and not server.counters.sessions_paused)

    run(main())


def test_half_received_requests_do_not_wait_for_each_other_for_ever(run: Run) -> None:
    async def main() -> None:
        async with (
            serving(queued_bytes_max=100_000, request_bytes_max=1_000_000) as server,
            peer_of(server) as one,
            peer_of(server) as two,
            peer_of(server) as three,
        ):
            peers = (one, two, three)
            streams = [frame(bytes([number]) * 1_000_000) for number in range(3)]
            sent = [
                peer.send_what_fits(stream[:400_000])
                for peer, stream in zip(peers, streams, strict=True)
            ]
            await until(lambda: server.counters.sessions_paused == 2)
            assert server.queued_bytes <= 1_000_004 + 2 * 4 * RECEIVE_BUFFER_BYTES
            await asyncio.gather(*map(finish, peers, streams, sent))
            assert server.queued_bytes == 0

    async def finish(peer: Peer, stream: bytes, sent: int) -> None:
        await peer.send(stream[sent:])
        assert await peer.receive(len(stream)) == stream

    run(main())


def test_requests_that_alone_exceed_the_bound_are_served(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with (
            serving(answers, queued_bytes_max=1000, pending_request_bytes_max=5000) as server,
            peer_of(server) as peer,
        ):
            bodies = [b"%d" % number * 900 for number in range(100)]
            await peer.send(b"".join(map(frame, bodies)))
            for body in bodies:
                await until(lambda: answers.waiting)
                answers.send(0)
                assert await peer.receive_frame() == body

    run(main())


def test_a_paused_connection_that_is_lost_gives_everything_back(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers, pending_requests_max=5) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(frame(b"r" * 100) * 50)
            await until(lambda: session.receiver.paused)
            session.abort("the test says so")
            await until(lambda: not server.sessions)
            assert server.queued_bytes == 0
            assert server.counters.sessions_paused == 0
            answers.send_all()

    run(main())
