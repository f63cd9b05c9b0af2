import asyncio
import logging
import random
import struct

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.network.peer import (
    ANYBODY,
    Answers,
    Peer,
    Run,
    echo,
    frame,
    peer_of,
    serving,
    session_of,
    until,
    until_received,
)

from ottla.network.session import Session
from ottla.network.session_hub import RECEIVE_BUFFER_BYTES
from ottla.protocol.errors import ProtocolError


def test_every_frame_is_answered(run: Run) -> None:
    async def main() -> None:
        async with serving() as server, peer_of(server) as peer:
            for body in (b"one", b"", b"three" * 1000):
                await peer.send(frame(body))
                assert await peer.receive_frame() == body
            assert server.counters.frames == 3

    run(main())


def test_frames_split_at_every_byte(run: Run) -> None:
    stream = frame(b"first") + frame(b"") + frame(b"the third")

    async def main() -> None:
        async with serving() as server, peer_of(server) as peer:
            session = await session_of(server)
            for size in range(1, len(stream)):
                seen = server.counters.bytes_in + size
                await peer.send(stream[:size])
                await until_received(server, bytes_in=seen)
                await peer.send(stream[size:])
                assert await peer.receive(len(stream)) == stream
            assert session.receiver.held_bytes == 0

    run(main())


def test_many_frames_in_one_segment_are_answered_in_one_write(run: Run) -> None:
    stream = b"".join(frame(b"%d" % number) for number in range(5000))

    async def main() -> None:
        async with serving() as server, peer_of(server) as peer:
            await peer.send(stream)
            assert await peer.receive(len(stream)) == stream
            assert server.counters.frames == 5000

    run(main())


@pytest.mark.parametrize("size", [16_379, RECEIVE_BUFFER_BYTES - 4, RECEIVE_BUFFER_BYTES, 5 << 20])
def test_large_frames_between_small_ones(run: Run, size: int) -> None:
    bodies = [b"small", random.Random(size).randbytes(size), b"small again"]
    stream = b"".join(map(frame, bodies))

    async def main() -> None:
        async with serving() as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(stream[: size // 2])
            await until(lambda: server.counters.bytes_in == size // 2)
            assert 0 < session.receiver.held_bytes <= max(65_536, 4 * size)
            await peer.send(stream[size // 2 :])
            for body in bodies:
                assert await peer.receive_frame() == body
            assert session.receiver.held_bytes == 0

    run(main())


def test_a_frame_can_be_written_to_in_place(run: Run) -> None:
    def shout(session: Session, body: memoryview) -> None:
        body[:] = bytes(body).upper()
        session.send_now(frame(bytes(body)))

    async def main() -> None:
        async with serving(shout) as server, peer_of(server) as peer:
            for body in (b"quiet", b"loud" * 100_000):
                await peer.send(frame(body))
                assert await peer.receive_frame() == body.upper()

    run(main())


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=40), max_size=30), st.lists(st.integers(1, 60), min_size=1))
def test_chunking_does_not_matter(bodies: list[bytes], chunk_sizes: list[int]) -> None:
    """Without a transport: the chunks go directly into the session's buffer."""
    dispatched: list[bytes] = []

    def keep(_: Session, body: memoryview) -> None:
        dispatched.append(bytes(body))

    async def main() -> None:
        async with (
            serving(lambda _, body: dispatched.append(bytes(body))) as server,
            peer_of(server),
        ):
            session = await session_of(server)
            stream = b"".join(map(frame, bodies))
            position = number = 0
            while position < len(stream):
                chunk = stream[position : position + chunk_sizes[number % len(chunk_sizes)]]
                session.receiver.get_buffer(-1)[: len(chunk)] = chunk
                session.receiver.buffer_updated(len(chunk))
                position += len(chunk)
                number += 1

    uvloop.run(main())
    assert dispatched == bodies


def test_sessions_do_not_disturb_each_others_partial_frames(run: Run) -> None:
    async def main() -> None:
        async with serving() as server, peer_of(server) as one, peer_of(server) as two:
            first, second = frame(b"a" * 9000), frame(b"b" * 9000)
            await one.send(first[:5000])
            await two.send(second[:3000])
            await until(lambda: server.counters.bytes_in == 8000)
            await one.send(first[5000:])
            await two.send(second[3000:])
            assert await one.receive(len(first)) == first
            assert await two.receive(len(second)) == second

    run(main())


@pytest.mark.parametrize("seed", range(5))
def test_answers_leave_in_the_order_of_the_requests(run: Run, seed: int) -> None:
    chance = random.Random(seed)
    answers = Answers()

    def dispatch(session: Session, body: memoryview) -> None:
        """Some are answered at once, some later, some never."""
        match chance.randrange(4):
            case 0:
                session.send_now(frame(bytes(body)))
            case 1:
                session.reply(ANYBODY).send([b"", frame(bytes(body))[:6], frame(bytes(body))[6:]])
            case _:
                answers(session, body)

    async def main() -> None:
        bodies = [b"request %d" % number for number in range(300)]
        async with serving(dispatch) as server, peer_of(server) as peer:
            for start in range(0, 300, 50):
                await peer.send(b"".join(map(frame, bodies[start : start + 50])))
                await until_received(server, frames=start + 50)
                for _ in range(chance.randrange(len(answers.waiting) + 1)):
                    answers.send(chance.randrange(len(answers.waiting)))
            while answers.waiting:
                answers.send(chance.randrange(len(answers.waiting)))
            for body in bodies:
                assert await peer.receive_frame() == body
            assert (await session_of(server)).receiver.held_bytes == 0
            assert server.queued_bytes == 0

    run(main())


def test_a_request_without_answer_lets_the_others_pass(run: Run) -> None:
    answers = Answers()

    def dispatch(session: Session, body: memoryview) -> None:
        if bytes(body) == b"silent":
            return
        answers(session, body)

    async def main() -> None:
        async with serving(dispatch) as server, peer_of(server) as peer:
            await peer.send(frame(b"a") + frame(b"silent") + frame(b"skipped") + frame(b"b"))
            await until(lambda: len(answers.waiting) == 3)
            answers.send(2)
            answers.waiting.pop()[0].skip()
            answers.send(0)
            assert await peer.receive(10) == frame(b"a") + frame(b"b")

    run(main())


def test_an_answer_after_the_end_is_dropped(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers) as server, peer_of(server) as peer:
            await peer.send(frame(b"a") * 3)
            await until(lambda: len(answers.waiting) == 3)
            answers.send(1)
            peer.reset()
            await until(lambda: not server.sessions)
            answers.send_all()
            assert server.queued_bytes == 0

    run(main())


def test_callbacks_are_called_once_when_the_connection_ends(run: Run) -> None:
    ended: list[Session] = []

    async def main() -> None:
        async with serving() as server, peer_of(server) as peer:
            session = await session_of(server)
            session.call_on_close(ended.append)
            peer.close()
            await until(lambda: session.closed)
            assert ended == [session]

    run(main())


@pytest.mark.parametrize("size", [1001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_an_oversize_frame_closes_the_connection(
    run: Run, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving(request_bytes_max=1000) as server, peer_of(server) as peer:
            await peer.send(frame(b"fine") + struct.pack(">I", size) + b"x" * 2000)
            assert await peer.receive_to_end() in (frame(b"fine"), b"")
            await until(lambda: not server.sessions)
            assert server.counters.frames_malformed == 1
            assert server.queued_bytes == 0

    run(main())
    assert f"a request of {size} bytes, more than 1000" in caplog.text


def test_garbage_closes_that_connection_only(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving() as server, peer_of(server) as good, peer_of(server) as bad:
            await bad.send(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
            assert await bad.receive_to_end() == b""
            await good.send(frame(b"still here"))
            assert await good.receive_frame() == b"still here"
            assert server.counters.frames_malformed == 1

    run(main())
    assert "broke the protocol" in caplog.text


def test_a_protocol_error_closes_after_the_answers_before_it(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    def dispatch(session: Session, body: memoryview) -> None:
        if bytes(body) == b"bad":
            raise ProtocolError("no such thing")
        echo(session, body)

    async def main() -> None:
        async with serving(dispatch) as server, peer_of(server) as peer:
            await peer.send(frame(b"good") + frame(b"bad") + frame(b"not seen"))
            assert await peer.receive_to_end() == frame(b"good")
            assert server.counters.frames == 2
            assert server.counters.frames_malformed == 1
            assert server.counters.dispatch_failures == 0

    run(main())
    assert "no such thing" in caplog.text


def test_a_failing_request_closes_that_connection_only(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    def dispatch(session: Session, body: memoryview) -> None:
        if bytes(body[:3]) == b"bad":
            raise KeyError("a fault of ours")
        echo(session, body)

    async def fails(peer: Peer, body: bytes) -> None:
        await peer.send(frame(body))
        assert await peer.receive_to_end() == b""

    async def main() -> None:
        async with serving(dispatch) as server, peer_of(server) as good:
            for body in (b"bad", b"bad" * 1_000_000):
                async with peer_of(server) as peer:
                    await fails(peer, body)
            await good.send(frame(b"good"))
            assert await good.receive_frame() == b"good"
            assert server.counters.dispatch_failures == 2

    caplog.set_level(logging.ERROR)
    run(main())
    assert "a fault of ours" in caplog.text


def test_a_peer_that_closed_its_half_gets_its_answers(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers) as server, peer_of(server) as peer:
            await peer.send(frame(b"a") + frame(b"b") + b"\0\0")
            peer.close_half()
            await until(lambda: len(answers.waiting) == 2)
            answers.send(1)
            answers.send(0)
            assert await peer.receive_to_end() == frame(b"a") + frame(b"b")
            await until(lambda: not server.sessions)

    run(main())


def test_closing_lets_what_was_answered_leave(run: Run) -> None:
    def dispatch(session: Session, body: memoryview) -> None:
        echo(session, body)
        session.close("that is all")

    async def main() -> None:
        async with serving(dispatch) as server, peer_of(server) as peer:
            # Both arrive in one segment, because a close with unread bytes is a reset.
            await peer.send(frame(b"a" * 50_000) + frame(b"b"))
            assert await peer.receive_to_end() == frame(b"a" * 50_000)
            await until(lambda: not server.sessions)

    run(main())


def test_a_muted_session_is_answered_and_not_heard_until_its_time_has_passed(run: Run) -> None:
    async def main() -> None:
        times_ms = {b"briefly": 1.0, b"for long": 600_000.0}
        seen: list[bytes] = []

        def dispatch(session: Session, body: memoryview) -> None:
            seen.append(bytes(body))
            session.send_now(frame(bytes(body)))
            if seen[-1] in times_ms:
                session.receiver.mute(times_ms[seen[-1]])

        async with serving(dispatch) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(frame(b"one") + frame(b"briefly") + frame(b"two"))
            for body in (b"one", b"briefly", b"two"):
                assert await peer.receive_frame() == body
            await peer.send(frame(b"for long") + frame(b"three"))
            assert await peer.receive_frame() == b"for long"
            assert session.receiver.paused
            session.receiver.mute(0)  # A shorter timeout does not end a longer one.
            await asyncio.sleep(0)
            assert session.receiver.paused
        assert seen == [b"one", b"briefly", b"two", b"for long"]

    run(main())
