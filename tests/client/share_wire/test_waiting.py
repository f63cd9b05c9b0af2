"""How records are shared among waiting receivers."""

import asyncio

from ottla.client.share_wire.waiting import Waiter, WaitingLine


def served(
    wants: list[int], available: int, *, more_follows: bool = False
) -> tuple[list[int], int, int]:
    """What each receiver gets, what is left over, and what is still wanted."""

    async def run() -> tuple[list[int], int, int]:
        line: WaitingLine[int] = WaitingLine()
        loop = asyncio.get_running_loop()
        waiters = [Waiter(count, 1_000, 0.0, 0.0, loop.create_future()) for count in wants]
        for waiter in waiters:
            line.join(waiter)
        left = line.deal(range(available), more_follows=more_follows)
        got = [len(each.future.result()) if each.future.done() else 0 for each in waiters]
        return got, len(left), line.demand

    return asyncio.run(run())


def test_everyone_gets_what_he_wants_when_there_is_enough() -> None:
    assert served([10, 1, 5], 16) == ([10, 1, 5], 0, 0)


def test_what_nobody_wants_is_left() -> None:
    assert served([2, 1], 5) == ([2, 1], 2, 0)


def test_too_little_is_divided_evenly() -> None:
    assert served([10, 10, 10], 7) == ([3, 2, 2], 0, 0)
    assert served([1, 10, 10], 9) == ([1, 4, 4], 0, 0)


def test_who_came_first_is_served_first() -> None:
    assert served([5, 5, 5], 2) == ([1, 1, 0], 0, 5)


def test_who_came_first_gets_all_that_he_wants_when_more_follows() -> None:
    assert served([10, 10, 10], 17, more_follows=True) == ([10, 7, 0], 0, 10)
    assert served([2, 1], 5, more_follows=True) == ([2, 1], 2, 0)


def test_nothing_to_deal_serves_nobody() -> None:
    assert served([5], 0) == ([0], 0, 5)


def test_one_that_gave_up_gets_nothing() -> None:
    async def run() -> None:
        line: WaitingLine[int] = WaitingLine()
        loop = asyncio.get_running_loop()
        gone, here = (Waiter(1, 1_000, 0.0, 0.0, loop.create_future()) for _ in range(2))
        line.join(gone)
        line.join(here)
        gone.future.cancel()  # Its task has not run since then.
        assert not line.deal([7])
        assert here.future.result() == [7]
        assert line.leave(gone)
        assert not line.leave(here)
        assert line.demand == 0

    asyncio.run(run())
