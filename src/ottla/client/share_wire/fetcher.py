"""Fetches for the waiting consumers of a queue from one broker.

A fetcher asks only for what is wanted, in one of two ways:

    hot   what is there now, without waiting; the fetchers of a queue divide the demand, so that
          together they get no more than is wanted
    cold  the last fetch found nothing: one that waits at the broker for what comes next

A cold fetch may bring more than is wanted by then, since others had the same idea; that is put
back, and does not count as a delivery. So does what a fetch brings while its fetcher is closed: a
broker that holds locks would keep what it gave to an answer that nobody reads.
"""

import asyncio
import logging
import random
from asyncio import AbstractEventLoop, Task
from contextlib import suppress
from typing import Final, Protocol

from ottla.client.share_wire.share_session import (
    FetchedShares,
    FetchTerms,
    ShareSession,
    is_session_lost,
)
from ottla.client.wire.errors import BrokerError, WireError
from ottla.records.errors import RecordError

logger = logging.getLogger(__name__)

FETCH_WAIT_MS_MAX: Final = 5_000
FETCH_WAIT_MS_WITH_LOCKS: Final = 250  # Where locks are of the session.
RECORDS_MAX: Final = 2_000  # In one fetch.

_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 2.0
_LAST_ANSWER_S: Final = 3.0  # For a broker that was asked to answer now.


class Queue(Protocol):
    """What a fetcher sees of the consumers that it fetches for."""

    def claim(self) -> int:
        """How many records to fetch for nobody else to fetch; 0: everything is claimed."""

    def give_up_claim(self, count: int) -> None: ...

    def part_of_demand(self) -> int:
        """How many records to wait for, though others do; 0: nobody wants any."""

    def terms(self, count: int, *, waits: bool) -> FetchTerms: ...

    def on_fetched(
        self, session: ShareSession, fetched: FetchedShares, terms: FetchTerms
    ) -> None: ...

    def on_looked(self) -> None:
        """This fetcher knows more about what is there."""

    async def on_trouble(self, error: Exception) -> None: ...


class ShareFetcher:
    def __init__(self, session: ShareSession, queue: Queue, loop: AbstractEventLoop) -> None:
        self.partitions: set[int] = set()
        self.is_cold = False
        self._session = session
        self._queue = queue
        self._loop = loop
        self._wanted = asyncio.Event()
        self._empty_since_s = -1.0  # When a fetch was sent that found nothing.
        self._closed = False
        self._answered = asyncio.Event()  # No fetch is under way whose records a broker holds.
        self._answered.set()
        self._task = self._start()

    def wake(self) -> None:
        self._wanted.set()

    def was_empty(self, since_s: float) -> bool:
        """Whether there was nothing for a consumer that has waited since then."""
        return self.is_cold or self._empty_since_s >= since_s

    async def close(self) -> None:
        self._closed = True
        if not self._answered.is_set():
            await self._session.interrupt()
            await self._wait_for_answer()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self._session.close()
        except WireError as error:
            logger.debug("a share session at node %d: %s", self._session.node_id, error)

    async def _wait_for_answer(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ANSWER_S):
                await self._answered.wait()

    def _start(self) -> "Task[None]":
        task = self._loop.create_task(self._run(), name=f"fetch from node {self._session.node_id}")
        task.add_done_callback(self._on_ended)
        return task

    def _on_ended(self, task: "Task[None]") -> None:
        """A mistake of ours must not leave consumers waiting for ever."""
        if self._closed or task.cancelled() or task.exception() is None:
            return
        logger.error("a fetcher failed; restarting it", exc_info=task.exception())
        self._session.abandon()
        self.is_cold = False
        self._loop.call_later(_PAUSE_S_MAX, self._restart)

    def _restart(self) -> None:
        if not self._closed:
            self._task = self._start()

    async def _run(self) -> None:
        pause_s = _PAUSE_S
        while not self._closed:
            try:
                fetched = await (self._fetch_cold() if self.is_cold else self._fetch_hot())
                self._queue.on_looked()
                if not fetched.errors:
                    pause_s = _PAUSE_S
                    continue
                error: Exception = _partition_error(fetched)
            except (WireError, RecordError) as caught:
                error = caught
            self.is_cold = False
            if not is_session_lost(error):
                logger.debug("a fetch from node %d: %s", self._session.node_id, error)
            await self._queue.on_trouble(error)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    async def _fetch_hot(self) -> FetchedShares:
        while not (count := self._queue.claim()):
            self._wanted.clear()
            await self._wanted.wait()
        try:
            sent_s = self._loop.time()
            fetched = await self._fetch(self._queue.terms(count, waits=False))
        finally:
            self._queue.give_up_claim(count)
        if not fetched.acquired and not fetched.errors:
            self._empty_since_s = sent_s
            self.is_cold = True
        return fetched

    async def _fetch_cold(self) -> FetchedShares:
        count = self._queue.part_of_demand()
        if not count:
            self.is_cold = False  # What comes from now on nobody looks for.
            return FetchedShares()
        fetched = await self._fetch(self._queue.terms(count, waits=True))
        self.is_cold = not fetched.acquired
        return fetched

    async def _fetch(self, terms: FetchTerms) -> FetchedShares:
        if terms.holds:
            self._answered.clear()
        try:
            fetched = await self._session.fetch(self.partitions, terms)
            self._queue.on_fetched(self._session, fetched, terms)
            return fetched
        finally:
            self._answered.set()


def _partition_error(fetched: FetchedShares) -> BrokerError:
    partition, code = next(iter(fetched.errors.items()))
    return BrokerError(code, f"partition {partition}")
