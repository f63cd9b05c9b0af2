"""Large requests wait for small ones, not the other way round."""

import contextlib

from tests.network.peer import Run, frame, peer_of, serving, until

from ottla.network.session import Session
from ottla.network.turns import CROWD, FRAMES_BETWEEN_LOOKS, LITTLE_FRAMES, TURN_MS

MUCH = 5_000
REQUEST_MS = 1.0
CROWDS = 4 * CROWD


def test_a_receive_full_of_requests_does_not_keep_others_waiting(run: Run) -> None:
    now_ms = 0.0
    order: list[bytes] = []

    def dispatch(session: Session, body: memoryview) -> None:
        nonlocal now_ms
        now_ms += REQUEST_MS
        order.append(bytes(body))
        session.send_now(frame(bytes(body)))

    async def main() -> None:
        async with (
            serving(dispatch, monotonic_ms=lambda: now_ms) as server,
            peer_of(server) as much,
            peer_of(server) as little,
        ):
            await until(lambda: len(server.sessions) == 2)
            much.send_what_fits(frame(b"much") * MUCH)
            await until(lambda: order)
            await little.send(frame(b"little"))
            assert await little.receive_frame() == b"little"
            assert order.index(b"little") < MUCH // 2
            assert await much.receive(8 * MUCH) == frame(b"much") * MUCH
            assert not server.counters.sessions_paused

    run(main())


def test_those_who_ask_for_much_take_turns(run: Run) -> None:
    now_ms = 0.0
    order: list[bytes] = []

    def dispatch(session: Session, body: memoryview) -> None:
        nonlocal now_ms
        now_ms += REQUEST_MS
        order.append(bytes(body))

    async def main() -> None:
        async with (
            serving(dispatch, monotonic_ms=lambda: now_ms) as server,
            peer_of(server) as one,
            peer_of(server) as two,
        ):
            await until(lambda: len(server.sessions) == 2)
            one.send_what_fits(frame(b"1") * MUCH)
            two.send_what_fits(frame(b"2") * MUCH)
            await until(lambda: len(order) == 2 * MUCH)
            begin = max(order.index(b"1"), order.index(b"2"))
            assert order[begin : begin + 1_000].count(b"1") in range(400, 600)

    run(main())


def test_a_round_stays_short_however_many_come_with_much_at_once(run: Run) -> None:
    """They queue up; small requests are served between two turns of the queue."""
    now_ms = 0.0
    order: list[bytes] = []

    def dispatch(session: Session, body: memoryview) -> None:
        nonlocal now_ms
        now_ms += REQUEST_MS
        order.append(bytes(body))
        session.send_now(frame(bytes(body)))

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            server = await stack.enter_async_context(serving(dispatch, monotonic_ms=lambda: now_ms))
            peers = [await stack.enter_async_context(peer_of(server)) for _ in range(CROWDS)]
            little = await stack.enter_async_context(peer_of(server))
            await until(lambda: len(server.sessions) == CROWDS + 1)
            for peer in peers:
                peer.send_what_fits(frame(b"much") * 1_000)
            await little.send(frame(b"little") * LITTLE_FRAMES)
            for _ in range(LITTLE_FRAMES):
                assert await little.receive_frame() == b"little"
            # The turn of the first, of later ones, and of the queue, perhaps twice.
            most = FRAMES_BETWEEN_LOOKS + 3 * TURN_MS / REQUEST_MS
            assert order.index(b"little") <= most < CROWDS
            for peer in peers:
                assert await peer.receive(8 * 1_000) == frame(b"much") * 1_000
            assert not server.counters.sessions_paused

    run(main())
