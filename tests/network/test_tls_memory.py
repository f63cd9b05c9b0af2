"""TLS connections and failed handshakes leave no memory behind."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.network.bad_handshakes import GROWTH_KB_MAX, trial
from tests.network.locked import Locked, stored
from tests.network.peer import Run, until

from ottla.network.trim import CLOSED_MIN, INTERVAL_MS, Trimmer, malloc_trim


def connections_left() -> int:
    return sum(type(reachable).__name__ == "SSLProtocol" for reachable in gc.get_objects())


async def fail_to_shake_hands(locked: Locked) -> None:
    port = locked.server.endpoints[0].port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    try:
        await reader.read()  # At most an alert, then the end.
    except ConnectionError:
        pass
    writer.close()


async def exchange(locked: Locked) -> None:
    connection = await locked.connect()
    assert await locked.exchange(connection, b"hello") == b"hello"


@pytest.mark.parametrize("talk", [fail_to_shake_hands, exchange])
def test_connections_that_have_ended_leave_nothing_to_the_garbage_collector(
    run: Run, tmp_path: Path, talk: Callable[[Locked], Awaitable[None]]
) -> None:
    async def main() -> None:
        gc.collect()
        before = connections_left()
        gc.disable()
        try:
            async with Locked(stored(tmp_path), keeps=False) as locked:
                for _ in range(3):
                    await talk(locked)
                await locked.hang_up()
                await until(lambda: connections_left() == before)
        finally:
            gc.enable()

    run(main())


def test_memory_is_given_back_after_many_connections_and_not_often() -> None:
    clock, count = [0.0], [0]

    def trim() -> None:
        count[0] += 1

    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            loop = asyncio.get_running_loop()
            start = partial(loop.run_in_executor, executor)
            trimmer = Trimmer(lambda: clock[0], start, trim)

            async def trims_after(closed: int) -> int:
                for _ in range(closed):
                    trimmer.on_closed()
                trimmer.maybe_trim()
                await loop.run_in_executor(executor, int)  # Behind it in the queue.
                return count[0]

            assert await trims_after(CLOSED_MIN - 1) == 0
            assert await trims_after(1) == 1
            assert await trims_after(CLOSED_MIN) == 1
            clock[0] += INTERVAL_MS
            assert await trims_after(0) == 2
            assert await trims_after(0) == 2

    asyncio.run(main())


def test_trimming_works_with_whatever_library_there_is() -> None:
    malloc_trim()


@pytest.mark.process
def test_a_broker_gives_back_the_memory_of_handshakes_that_failed(tmp_path: Path) -> None:
    grown = trial(tmp_path, connections=1_500, at_once=250)
    assert grown <= GROWTH_KB_MAX
