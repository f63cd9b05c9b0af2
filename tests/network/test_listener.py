import asyncio
import socket

import pytest
from tests.kits.manual_clock import ManualClock
from tests.network.peer import LOOPBACK, Run, frame, peer_of, serving, until
from tests.ports import ReservedPort

from ottla.network.connection_rates import ADDRESSES_UNSWEPT_MAX, ConnectionRates
from ottla.network.endpoints import Endpoint
from ottla.network.listener import ListenError
from ottla.network.server import Server
from ottla.security.rates import Windows


async def answers(host: str, port: int) -> bool:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(frame(b"hello"))
    answer = await reader.readexactly(9)
    writer.close()
    await writer.wait_closed()
    return answer == frame(b"hello")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


LOOPBACKS = ["127.0.0.1", "::1"] if has_ipv6() else ["127.0.0.1"]


@pytest.mark.parametrize("host", ["", "localhost"])
def test_all_loopback_addresses_answer_on_one_port(run: Run, host: str) -> None:
    async def main() -> None:
        async with serving(listeners=(Endpoint("PLAINTEXT", host, 0),)) as server:
            for address in LOOPBACKS:
                assert await answers(address, server.endpoints[0].port)

    run(main())


def test_each_listener_has_its_name_and_port(run: Run) -> None:
    async def main() -> None:
        inner = Endpoint("INTERNAL", "127.0.0.1", 0)
        async with serving(listeners=(LOOPBACK, inner)) as server:
            assert [e.listener_name for e in server.endpoints] == ["PLAINTEXT", "INTERNAL"]
            ports = [endpoint.port for endpoint in server.endpoints]
            assert len(set(ports)) == 2
            assert 0 not in ports
            _, writer = await asyncio.open_connection("127.0.0.1", ports[1])
            await until(lambda: server.sessions)
            assert [session.listener_name for session in server.sessions] == ["INTERNAL"]
            writer.close()
            await writer.wait_closed()

    run(main())


async def refusal(endpoint: Endpoint, *others: Endpoint) -> str:
    with pytest.raises(ListenError) as caught:
        async with serving(listeners=(*others, endpoint)):
            pass
    return str(caught.value)


def test_a_port_in_use_is_one_clear_sentence(run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            endpoint = server.endpoints[0]
            assert await refusal(endpoint) == (
                f"cannot listen on {endpoint}: port {endpoint.port} is in use by another process"
            )

    run(main())


def test_an_address_that_cannot_be_bound_is_one_clear_sentence(run: Run) -> None:
    async def main() -> None:
        assert await refusal(Endpoint("A", "192.0.2.1", 9092)) == (
            "cannot listen on A://192.0.2.1:9092: 192.0.2.1 is not an address of this machine"
        )
        assert (await refusal(Endpoint("A", "no-such-host.invalid", 9092))).startswith(
            "cannot listen on A://no-such-host.invalid:9092: "
        )

    run(main())


def test_when_one_listener_fails_the_others_are_released(run: Run) -> None:
    async def main() -> None:
        async with serving() as server:
            free = ReservedPort()
            other = Endpoint("OTHER", "127.0.0.1", free.number)
            await refusal(server.endpoints[0], other)
            async with serving(listeners=(other,)):
                pass

    run(main())


def test_client_sockets_are_prompt_and_notice_a_lost_peer(run: Run) -> None:
    async def main() -> None:
        async with serving() as server, peer_of(server) as peer:
            await peer.send(frame(b"a"))
            await peer.receive_frame()
            (session,) = server.sessions
            accepted = session.receiver._socket
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60

    run(main())


async def is_refused(server: Server) -> bool:
    async with peer_of(server) as peer:
        return await peer.receive_to_end() == b""


def test_connections_over_the_limit_are_closed_at_once(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        clock = ManualClock()  # Stands still: only the first of a kind is logged.
        async with (
            serving(monotonic_ms=clock.monotonic_ms, connections_max=2) as server,
            peer_of(server) as one,
        ):
            async with peer_of(server) as two:
                for peer in (one, two):
                    await peer.send(frame(b"in"))
                    assert await peer.receive_frame() == b"in"
                for _ in range(3):
                    assert await is_refused(server)
                assert server.counters.connections_refused == {"max.connections": 3}
            await until(lambda: server.counters.connections_open == 1)
            async with peer_of(server) as three:
                await three.send(frame(b"in"))
                assert await three.receive_frame() == b"in"

    run(main())
    lines = [line for line in caplog.messages if "refused" in line]
    assert lines == ["refused a connection from 127.0.0.1: max.connections"]


def test_an_address_has_a_limit_of_its_own(run: Run) -> None:
    async def main() -> None:
        none_for_another = {"127.0.0.2": 0}
        async with (
            serving(
                connections_per_ip_max=1, connections_per_ip_overrides=none_for_another
            ) as server,
            peer_of(server) as peer,
        ):
            await peer.send(frame(b"in"))
            assert await peer.receive_frame() == b"in"
            assert await is_refused(server)
            with socket.socket() as other:
                other.bind(("127.0.0.2", 0))
                other.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(other, tuple(server.endpoints[0][1:]))
                assert await loop.sock_recv(other, 1) == b""
            assert server.counters.connections_refused == {"max.connections.per.ip": 2}

    run(main())


def test_an_address_that_connects_too_fast_is_held_and_then_closed(run: Run) -> None:
    async def main() -> None:
        clock = ManualClock()
        async with serving(monotonic_ms=clock.monotonic_ms) as server:
            server.connection_rates.of_address = {"127.0.0.1": 0.3}.get
            async with peer_of(server) as one, peer_of(server) as two, peer_of(server) as three:
                for peer in (one, two, three):
                    await peer.send(frame(b"hello"))
                    assert await peer.receive_frame() == b"hello"
                async with peer_of(server) as fourth:
                    assert await fourth.receive_to_end() == b""
                assert server.counters.connections_refused == {"connection_creation_rate": 1}
                clock.advance(14_000)
                async with peer_of(server) as fifth:
                    await fifth.send(frame(b"hello"))
                    assert await fifth.receive_frame() == b"hello"

    run(main())


def test_connections_that_come_faster_than_the_brokers_rate_wait(run: Run) -> None:
    async def main() -> None:
        windows = Windows(1, 1)
        async with serving(connection_rate_max=1, quota_windows=windows) as server:
            for _ in range(3):
                async with peer_of(server) as peer:
                    await peer.send(frame(b"hello"))
                    assert await peer.receive_frame() == b"hello"
            assert server.counters.accept_pauses
            assert server.counters.connections_refused == {}

    run(main())


def test_addresses_without_end_leave_nothing_behind() -> None:
    clock = ManualClock()
    rates = ConnectionRates(Windows(11, 1000), 1e9, clock.monotonic_ms)
    rates.of_address = lambda _: 1.0
    for number in range(5 * ADDRESSES_UNSWEPT_MAX):
        clock.advance(100)
        rates.throttle_ms(f"10.0.{number >> 8}.{number & 255}")
    assert rates.addresses <= 2 * ADDRESSES_UNSWEPT_MAX
