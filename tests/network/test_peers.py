import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.types import BrokerId
from kio.schema.vote.v2.request import VoteRequest
from tests.network.peer import Answers, Run, frame, serving, until
from tests.ports import ReservedPort

from ottla.network.peers import BuildFrame, PeerRefused, Peers, PeerUnreachable
from ottla.network.server import Server
from ottla.network.session import Session
from ottla.protocol.addresses import Address
from ottla.protocol.codec import newest_response_type, read_request, write_response
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import parse_request_header

VOTE = 52
API_VERSIONS = 18
LONG_MS = 120_000


def address_of(server: Server) -> Address:
    endpoint = server.endpoints[0]
    return Address(endpoint.host, endpoint.port)


@contextlib.asynccontextmanager
async def calling() -> AsyncIterator[Peers]:
    peers = Peers(asyncio.get_running_loop(), "node-1", lambda: 0.5)
    try:
        yield peers
    finally:
        peers.close()


def request_frame(body: bytes) -> BuildFrame:
    return lambda correlation_id: frame(struct.pack(">i", correlation_id) + body)


async def ask(
    peers: Peers,
    address: Address,
    body: bytes,
    *,
    purpose: str = "test",
    timeout_ms: int = LONG_MS,
    at_once: bool = False,
) -> bytes:
    built = request_frame(body)
    answer = await peers.call_frame(
        address, built, purpose=purpose, timeout_ms=timeout_ms, at_once=at_once
    )
    return bytes(answer[4:])


def test_a_call_gets_the_newest_entity_of_its_response(run: Run) -> None:
    seen: list[object] = []

    def dispatch(session: Session, body: memoryview) -> None:
        header = parse_request_header(body)
        seen.append((header.api_key, header.api_version, header.client_id))
        seen.append(read_request(header, body))
        response = newest_response_type(VOTE)(error_code=ErrorCode.none, topics=())
        session.send_now(write_response(VOTE, 1, header.correlation_id, response))

    request = VoteRequest(cluster_id="c", voter_id=BrokerId(2), topics=())

    async def main() -> None:
        async with serving(dispatch) as server, calling() as peers:
            response = await peers.call(address_of(server), request, version=1, timeout_ms=LONG_MS)
            assert response == newest_response_type(VOTE)(error_code=ErrorCode.none, topics=())
            assert seen == [(VOTE, 1, "node-1"), request]

    run(main())


def test_calls_are_pipelined_on_one_connection_for_each_purpose(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers) as server, calling() as peers:
            address = address_of(server)
            first, second, other = (
                asyncio.ensure_future(ask(peers, address, body, purpose=purpose))
                for body, purpose in ((b"a", "x"), (b"b", "x"), (b"c", "y"))
            )
            await until(lambda: len(answers.waiting) == 3)
            assert len(server.sessions) == 2
            answers.send_all()
            assert [await first, await second, await other] == [b"a", b"b", b"c"]

    run(main())


@pytest.mark.parametrize("size", [0, 65_526, 65_527, 65_528, 65_529, 3_000_000])
def test_answers_of_any_size_arrive_whole(run: Run, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    async def main() -> None:
        async with calling() as peers, serving() as server:
            bodies = [body, b"small", body, body]
            calls = (ask(peers, address_of(server), each) for each in bodies)
            assert await asyncio.gather(*calls) == bodies
            assert len(server.sessions) == 1

    run(main())


def test_a_refused_connection_fails_at_once(run: Run) -> None:
    async def main() -> None:
        nobody_listens = ReservedPort()
        async with calling() as peers:
            for host in ("127.0.0.1", "localhost"):
                with pytest.raises(PeerRefused, match="cannot be reached"):
                    await ask(peers, Address(host, nobody_listens.number), b"a")

    run(main())


def test_a_name_that_does_not_exist_cannot_be_reached(run: Run) -> None:
    async def main() -> None:
        async with calling() as peers:
            with pytest.raises(PeerUnreachable, match="cannot be reached") as unreachable:
                await ask(peers, Address("no..name", 1), b"a")
            assert not isinstance(unreachable.value, PeerRefused)

    run(main())


def test_a_dropped_connection_fails_every_call_and_the_next_connects_again(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers) as server, calling() as peers:
            address = address_of(server)
            calls = [asyncio.ensure_future(ask(peers, address, b"a")) for _ in range(2)]
            await until(lambda: len(answers.waiting) == 2)
            (session,) = server.sessions
            session.abort("test")
            for call in calls:
                with pytest.raises(PeerUnreachable, match="closed the connection"):
                    await call
            answers.waiting.clear()
            again = asyncio.ensure_future(ask(peers, address, b"again"))
            await until(lambda: answers.waiting)
            answers.send_all()
            assert await again == b"again"

    run(main())


def test_an_answer_that_is_late_ends_the_connection(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers) as server, calling() as peers:
            address = address_of(server)
            first = asyncio.ensure_future(ask(peers, address, b"first"))
            await until(lambda: answers.waiting)  # It is connected.
            answers.send_all()
            await first
            patient = asyncio.ensure_future(ask(peers, address, b"a"))
            with pytest.raises(PeerUnreachable, match="did not answer within 10 ms"):
                await ask(peers, address, b"b", timeout_ms=10)
            with pytest.raises(PeerUnreachable, match="did not answer within 10 ms"):
                await patient
            again = asyncio.ensure_future(ask(peers, address, b"again"))
            # The first two may have been too late to be sent at all.
            await until(lambda: any(body.endswith(b"again") for _, body in answers.waiting))
            answers.send_all()
            assert await again == b"again"

    run(main())


def test_the_answer_of_a_cancelled_call_is_passed_over(run: Run) -> None:
    answers = Answers()

    async def main() -> None:
        async with serving(answers) as server, calling() as peers:
            address = address_of(server)
            cancelled = asyncio.ensure_future(ask(peers, address, b"a"))
            call = asyncio.ensure_future(ask(peers, address, b"b"))
            await until(lambda: len(answers.waiting) == 2)
            cancelled.cancel()
            answers.send_all()
            assert await call == b"b"

    run(main())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (frame(struct.pack(">i", 77)), "sent response 77"),
        (frame(b"abc"), "announced a response of 3 bytes"),
        (b"\xff\xff\xff\xff....", "announced a response of 4294967295 bytes"),
    ],
)
def test_an_answer_that_is_not_one_ends_the_connection(
    run: Run, answer: bytes, reason: str
) -> None:
    def dispatch(session: Session, _: memoryview) -> None:
        session.send_now(answer)

    async def main() -> None:
        async with serving(dispatch) as server, calling() as peers:
            with pytest.raises(PeerUnreachable, match=reason):
                await ask(peers, address_of(server), b"a")
            await until(lambda: not server.sessions)

    run(main())


def test_a_response_that_cannot_be_read_ends_the_connection(run: Run) -> None:
    def dispatch(session: Session, body: memoryview) -> None:
        correlation_id = parse_request_header(body).correlation_id
        session.send_now(frame(struct.pack(">i", correlation_id) + b"\x00\x00\xff\xff\xff\xff\x7f"))

    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")

    async def main() -> None:
        async with serving(dispatch) as server, calling() as peers:
            with pytest.raises(PeerUnreachable, match="a response that is wrong"):
                await peers.call(address_of(server), request, version=3, timeout_ms=LONG_MS)
            await until(lambda: not server.sessions)

    run(main())


def test_closing_fails_what_waits_and_what_comes(run: Run) -> None:
    async def main() -> None:
        async with serving(Answers()) as server, calling() as peers:
            address = address_of(server)
            call = asyncio.ensure_future(ask(peers, address, b"a"))
            await until(lambda: server.counters.frames == 1)
            peers.close()
            for each in (call, ask(peers, address, b"b")):
                with pytest.raises(PeerUnreachable, match="the node stops"):
                    await each

    run(main())
