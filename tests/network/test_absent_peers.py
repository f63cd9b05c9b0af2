"""The cost of a peer that does not answer, and how soon a returning one is retried."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable

import pytest
from tests.network.peer import Answers, Run, echo, serving, until
from tests.network.test_peers import address_of, ask, calling
from tests.ports import HOST, ReservedPort

from ottla.network import peers as peers_module
from ottla.network.endpoints import Endpoint
from ottla.network.peers import PeerRefused, Peers, PeerSilent, PeerUnreachable
from ottla.network.session import Session
from ottla.protocol.addresses import Address
from ottla.protocol.codec import newest_request_type
from ottla.protocol.frames import API_VERSIONS_KEY

ATTEMPTS = 40
ROUNDS = 3


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many attempts in a short time."""
    monkeypatch.setattr(peers_module, "BACKOFF_FIRST_S", 0.0)


async def _ask_at_once(peers: Peers, address: Address, _: bytes) -> None:
    request = newest_request_type(API_VERSIONS_KEY)(
        client_software_name="test", client_software_version="1"
    )
    await peers.call(address, request, version=3, timeout_ms=60_000, at_once=True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("ask", [ask, _ask_at_once])
def test_an_attempt_that_failed_leaves_nothing_behind(
    run: Run, ask: Callable[[Peers, Address, bytes], Awaitable[object]]
) -> None:
    async def attempt(peers: Peers, address: Address) -> None:
        with pytest.raises(PeerRefused):
            await ask(peers, address, b"a")

    async def main() -> int:
        nobody_listens = ReservedPort()
        async with calling() as peers:
            address = Address(HOST, nobody_listens.number)
            await attempt(peers, address)
            gc.collect()
            gc.disable()
            try:
                growths = []
                for _ in range(ROUNDS):
                    before = len(gc.get_objects())
                    for _ in range(ATTEMPTS):
                        await attempt(peers, address)
                    growths.append(len(gc.get_objects()) - before)
                return min(growths)  # Threads of other tests create objects, but not in each round.
            finally:
                gc.enable()

    assert run(main()) < ATTEMPTS


def test_calls_at_once_share_a_connection_until_it_is_dropped(run: Run) -> None:
    opened: list[object] = []

    def note(session: Session, body: memoryview) -> None:
        if session not in opened:
            opened.append(session)
        echo(session, body)

    async def main() -> None:
        async with serving(note) as server, calling() as peers:
            address = address_of(server)
            for _ in range(3):
                assert await ask(peers, address, b"a", at_once=True) == b"a"
            assert len(opened) == 1
            assert peers.is_connected(address, "test")
            peers.drop(address, "test", "is not needed")
            assert not peers.is_connected(address, "test")
            assert await ask(peers, address, b"a", at_once=True) == b"a"
            assert len(opened) == 2

    run(main())


def test_a_peer_is_known_to_have_ended_until_it_answers(run: Run) -> None:
    async def main() -> None:
        async with calling() as peers:
            nobody_listens = ReservedPort()
            address = Address(HOST, nobody_listens.number)
            assert not peers.is_refused(address)
            with pytest.raises(PeerRefused):
                await ask(peers, address, b"a")
            assert peers.is_refused(address)
            peers._on_answered((address, "test"))
            assert not peers.is_refused(address)

    run(main())


def test_a_connection_has_no_buffer_before_it_is_open(run: Run) -> None:
    async def main() -> None:
        async with serving() as server, calling() as peers:
            address = address_of(server)
            call = asyncio.ensure_future(ask(peers, address, b"a"))
            await asyncio.sleep(0)
            connection = peers._connections[address, "test"]
            assert not connection._buffer
            assert await call == b"a"
            assert connection._buffer
            peers.close()
            await until(lambda: not connection._buffer)

    run(main())


def test_waits_between_attempts_double_up_to_a_bound(run: Run) -> None:
    async def main() -> None:
        nobody_listens = ReservedPort()
        address = Address(HOST, nobody_listens.number)
        async with calling() as peers:
            waits_s = []
            for _ in range(12):
                with pytest.raises(PeerRefused):
                    await ask(peers, address, b"a")
                waits_s.append(round(peers._absences[address].attempts["test"][1] - now(), 3))
                peers._absences[address].attempts["test"] = (len(waits_s), 0.0)  # It has passed.
        # `calling` draws the middle of the jitter range, and a little time has passed.
        full_s = [min(0.02 * 2**count, 1.0) * 0.75 for count in range(12)]
        assert all(wait <= full for wait, full in zip(waits_s, full_s, strict=True))

    def now() -> float:
        return asyncio.get_running_loop().time()

    run(main())


def test_each_purpose_is_refused_at_once(run: Run) -> None:
    """So a caller that must learn of the end of a process does not wait for earlier attempts."""

    async def main() -> None:
        nobody_listens = ReservedPort()
        address = Address(HOST, nobody_listens.number)
        async with calling() as peers:
            for purpose in ("a", "b", "c"):
                with pytest.raises(PeerRefused):
                    await ask(peers, address, b"a", purpose=purpose)
                assert peers._absences[address].attempts[purpose][0] == 1

    run(main())


def test_a_peer_that_is_back_is_asked_without_waiting(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_module, "BACKOFF_FIRST_S", 3600.0)
    monkeypatch.setattr(peers_module, "BACKOFF_MAX_S", 3600.0)

    async def main() -> None:
        nobody_listens = ReservedPort()
        address = Address(HOST, nobody_listens.number)
        async with calling() as peers:
            for purpose in ("a", "b"):
                with pytest.raises(PeerRefused):
                    await ask(peers, address, b"", purpose=purpose)
            async with serving(
                listeners=(Endpoint("PLAINTEXT", HOST, nobody_listens.number),)
            ) as server:
                assert address_of(server) == address
                waiting = asyncio.ensure_future(ask(peers, address, b"waits", purpose="a"))
                await asyncio.sleep(0)
                assert not waiting.done()
                peers.expect(address)
                assert await waiting == b"waits"
                # A response on one connection is enough for all.
                assert await ask(peers, address, b"other", purpose="b") == b"other"
                assert not peers._absences

    run(main())


@pytest.mark.usefixtures("quick")
def test_an_absence_is_logged_when_it_lasts_and_when_it_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(peers_module, "REPORTED_AFTER_S", 0.0)
    caplog.set_level(logging.INFO)

    async def main() -> None:
        nobody_listens = ReservedPort()
        address = Address(HOST, nobody_listens.number)
        async with calling() as peers:
            for _ in range(5):
                with pytest.raises(PeerRefused):
                    await ask(peers, address, b"")
            async with serving(listeners=(Endpoint("PLAINTEXT", HOST, nobody_listens.number),)):
                await ask(peers, address, b"")
                await ask(peers, address, b"")

    run(main())
    lines = [record.getMessage() for record in caplog.records if "answer" in record.getMessage()]
    assert len(lines) == 2
    assert "retrying until it does" in lines[0]
    assert lines[1].endswith("and 5 attempts")


def test_a_call_that_was_too_late_says_so(run: Run) -> None:
    async def main() -> None:
        async with serving(Answers()) as server, calling() as peers:
            with pytest.raises(PeerSilent, match="did not answer within 10 ms"):
                await ask(peers, address_of(server), b"a", timeout_ms=10)

    run(main())


def test_a_peer_that_closes_every_connection_counts_as_absent(run: Run) -> None:
    """Like a proxy whose backend is gone."""

    async def main() -> None:
        async with serving(lambda session, _: session.abort("test")) as server, calling() as peers:
            address = address_of(server)
            for _ in range(3):
                with pytest.raises(PeerUnreachable):
                    await ask(peers, address, b"a")
            assert peers._absences[address].attempts["test"][0] == 3

    run(main())
