"""Pieces of files reach the peer byte for byte, whichever way they are sent."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.network.peer import Run, frame, peer_of, serving, session_of, until
from tests.network.some_file import Piece, SomeFile

from ottla.network.answers import GATHERED_BYTES_MAX
from ottla.network.outbox import READ_BYTES_MAX, SENDFILE_BYTES_MIN
from ottla.network.session import Session

CONTENT = random.Random(7).randbytes(3_000_000)


@pytest.fixture(params=["sendfile", "cached", "thread"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SomeFile]:
    path = tmp_path / "segment"
    path.write_bytes(CONTENT)
    opened = SomeFile(path, request.param)
    yield opened
    opened.close()


class Pieces:
    """Answers each request `position:size` with that piece of the file."""

    def __init__(self, file: SomeFile) -> None:
        self.file = file

    def __call__(self, session: Session, body: memoryview) -> None:
        position, size = map(int, bytes(body).split(b":"))
        head = (size + 4).to_bytes(4) + b"head"
        session.reply().send([head, Piece(self.file, position, size)])


SIZES = [1, 100, SENDFILE_BYTES_MIN - 1, SENDFILE_BYTES_MIN, READ_BYTES_MAX + 1, 300_000, 2_900_000]


def test_pieces_equal_the_file(run: Run, file: SomeFile) -> None:
    async def main() -> None:
        async with serving(Pieces(file)) as server, peer_of(server) as peer:
            for size in SIZES:
                await peer.send(frame(b"%d:%d" % (77, size)))
                assert await peer.receive_frame() == b"head" + CONTENT[77 : 77 + size]
            if file.fileno() is not None:
                assert server.counters.bytes_sent_by_sendfile > 2_000_000
            assert (server.counters.file_reads_in_thread > 0) == (file._way == "thread")
            assert server.counters.bytes_out == sum(SIZES) + 8 * len(SIZES)
            await until(lambda: server.queued_bytes == 0)

    run(main())


def test_pieces_and_bytes_keep_their_order(run: Run, file: SomeFile) -> None:
    chance = random.Random(3)
    pieces = Pieces(file)

    def dispatch(session: Session, body: memoryview) -> None:
        if body[0] == ord("="):
            session.send_now(frame(bytes(body)))
        else:
            pieces(session, body)

    async def main() -> None:
        requests, answers = [], []
        for number in range(200):
            if chance.random() < 0.5:
                requests.append(b"=%d" % number)
                answers.append(requests[-1])
            else:
                position, size = chance.randrange(1_000_000), chance.choice([5, 5000, 100_000])
                requests.append(b"%d:%d" % (position, size))
                answers.append(b"head" + CONTENT[position : position + size])
        async with serving(dispatch) as server, peer_of(server) as peer:
            await peer.send(b"".join(map(frame, requests)))
            for answer in answers:
                assert await peer.receive_frame() == answer

    run(main())


def test_one_answer_of_many_pieces(run: Run, file: SomeFile) -> None:
    pieces = [(number * 1000, 1 + number * 700) for number in range(200)]
    expected = b"".join(CONTENT[position : position + size] for position, size in pieces)

    def dispatch(session: Session, body: memoryview) -> None:
        head = len(expected).to_bytes(4)
        session.reply().send([head, *(Piece(file, *piece) for piece in pieces)])

    async def main() -> None:
        async with serving(dispatch) as server, peer_of(server) as peer:
            await peer.send(frame(b"all"))
            assert await peer.receive_frame() == expected

    run(main())


def test_a_file_that_leaves_the_page_cache_while_it_is_sent(run: Run, file: SomeFile) -> None:
    async def main() -> None:
        async with (
            serving(Pieces(file), send_buffer_bytes=50_000) as server,
            peer_of(server, receive_buffer=50_000) as peer,
        ):
            await peer.send(frame(b"0:2900000"))
            await until(lambda: 0 < server.counters.bytes_out < 2_000_000)
            file.evicted = True
            assert await peer.receive_frame() == b"head" + CONTENT[:2_900_000]
            assert server.counters.file_reads_in_thread > 0

    run(main())


def test_a_slow_reader_of_files_stays_bounded(run: Run, file: SomeFile) -> None:
    async def main() -> None:
        bound = 100_000 + GATHERED_BYTES_MAX + READ_BYTES_MAX
        async with (
            serving(Pieces(file), unsent_bytes_max=100_000, send_buffer_bytes=50_000) as server,
            peer_of(server, receive_buffer=50_000) as peer,
        ):
            session = await session_of(server)
            await peer.send(frame(b"0:2900000") * 5000)
            await until(lambda: session.receiver.paused)
            assert server.counters.frames < 1500
            for _ in range(30):
                assert session.receiver.held_bytes <= bound
                assert server.counters.bytes_out < 1_000_000
                await until(lambda: True)
            assert await peer.receive_frame() == b"head" + CONTENT[:2_900_000]
            assert session.receiver.held_bytes <= bound

    run(main())


def test_a_peer_lost_in_the_middle_of_a_file(run: Run, file: SomeFile) -> None:
    async def main() -> None:
        async with (
            serving(Pieces(file), send_buffer_bytes=50_000) as server,
            peer_of(server, receive_buffer=50_000) as peer,
        ):
            file.gate.set()
            await peer.send(frame(b"0:2900000") * 20)
            await peer.receive(1000)
            peer.reset()
            await until(lambda: not server.sessions)
            assert server.queued_bytes == 0
            async with peer_of(server) as other:
                await other.send(frame(b"5:5"))
                assert await other.receive_frame() == b"head" + CONTENT[5:10]

    run(main())


def test_a_file_that_is_too_short_closes_the_connection(run: Run, file: SomeFile) -> None:
    async def main() -> None:
        async with serving(Pieces(file)) as server, peer_of(server) as peer:
            await peer.send(frame(b"2999000:200000") + frame(b"0:1"))
            received = await peer.receive_to_end()
            assert len(received) <= 1008
            await until(lambda: not server.sessions)

    run(main())


@pytest.mark.parametrize("file", ["cached", "thread"], indirect=True)
def test_a_file_that_cannot_be_read_closes_the_connection(
    run: Run, file: SomeFile, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        file.failing = True
        async with serving(Pieces(file)) as server, peer_of(server) as peer:
            await peer.send(frame(b"0:200000"))
            await peer.receive_to_end()
            await until(lambda: not server.sessions)
            assert server.queued_bytes == 0

    run(main())
    assert "the disk is broken" in caplog.text


@pytest.mark.parametrize("file", ["thread"], indirect=True)
def test_a_cold_read_delays_only_its_own_connection(run: Run, file: SomeFile) -> None:
    def dispatch(session: Session, body: memoryview) -> None:
        if bytes(body) == b"hot":
            session.send_now(frame(b"hot"))
        else:
            session.reply().send([(100).to_bytes(4), Piece(file, 0, 100)])

    async def main() -> None:
        file.gate.clear()
        async with serving(dispatch) as server, peer_of(server) as cold, peer_of(server) as hot:
            await cold.send(frame(b"cold") + frame(b"hot"))
            await until(lambda: server.counters.file_reads_in_thread == 1)
            await hot.send(frame(b"hot"))
            assert await hot.receive_frame() == b"hot"
            file.gate.set()
            assert await cold.receive_frame() == CONTENT[:100]
            assert await cold.receive_frame() == b"hot"

    run(main())


@pytest.mark.parametrize("file", ["thread"], indirect=True)
def test_a_peer_lost_while_a_thread_reads(run: Run, file: SomeFile) -> None:
    async def main() -> None:
        file.gate.clear()
        async with serving(Pieces(file)) as server, peer_of(server) as peer:
            await peer.send(frame(b"0:100000") * 3)
            await until(lambda: server.counters.file_reads_in_thread == 1)
            peer.reset()
            await until(lambda: not server.sessions)
            file.gate.set()
            assert server.queued_bytes == 0

    run(main())
