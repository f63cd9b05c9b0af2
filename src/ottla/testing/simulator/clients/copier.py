"""Copies a partition exactly once: records and the offset up to which they are copied, together.

It begins where the last transaction that was committed ended, also after a crash. Another one with
the same transactional id fences it.
"""

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import History
from ottla.testing.simulator.clients.client import Client, RefusedError, Unavailable
from ottla.testing.simulator.clients.consumption import Consumption
from ottla.testing.simulator.clients.reader import Fetcher
from ottla.testing.simulator.clients.transaction import TransactionalProducer
from ottla.testing.simulator.events import (
    OffsetCommitted,
    OffsetFetched,
    Processed,
    ReadRecord,
    TransactionEnded,
)
from ottla.testing.simulator.violation import Violation

ABORT_CHANCE = 0.15
RECORDS_MAX = 5
WAIT_MS = 300


def copier_group(source: TopicPartition) -> str:
    return f"copier-of-{source}"


class Copier:
    def __init__(
        self,
        client: Client,
        history: History,
        source: TopicPartition,
        targets: list[TopicPartition],
    ) -> None:
        self._client = client
        self._history = history
        self._source = source
        self._targets = targets
        self._group = copier_group(source)
        self._consumption = Consumption(client, history, self._group)
        self._producer = TransactionalProducer(client, self._group)
        self._transactions_count = 0

    async def run(self) -> None:
        client = self._client
        while not client.stopping:
            try:
                await self._begin_and_copy()
            except (Unavailable, RefusedError) as error:
                client.tell(f"begins anew: {error}")
                if client.superseded:
                    return
                await client.back_off()

    async def _begin_and_copy(self) -> None:
        client = self._client
        await self._producer.init()
        asked_at = client.now
        offset = await self._consumption.fetch_offset(self._source, "", -1)
        self._history.tell(OffsetFetched(self._group, self._source, offset, asked_at))
        client.tell(f"copies {self._source} from {offset}")
        fetcher = Fetcher(client, self._source, max(offset, 0), committed=False)
        while not client.stopping:
            records = (await fetcher.poll(WAIT_MS))[:RECORDS_MAX]
            if records:
                fetcher.offset = records[-1].offset + 1
                if not await self._copy(records):
                    fetcher.offset = records[0].offset

    async def _copy(self, records: list[ReadRecord]) -> bool:
        """In one transaction; False if it was aborted on purpose."""
        self._transactions_count += 1
        name = f"{self._client.name} {self._transactions_count}"
        values: dict[TopicPartition, list[bytes]] = {}
        for record in records:
            target = self._client.chance.choice(self._targets)
            copied = f"{self._source} {record.offset} in {name}".encode()
            values.setdefault(target, []).append(copied)
        commit = self._client.chance.random() > ABORT_CHANCE
        next_offset = records[-1].offset + 1
        written = tuple((target, value) for target, found in values.items() for value in found)
        decided: bool | None = False  # Nothing is committed before the end is asked for.
        try:
            await self._producer.produce(values)
            await self._producer.commit_offset(self._group, self._source, next_offset)
            if commit:
                decided = None
                for record in records:
                    self._history.tell(Processed(self._group, self._source, record))
                self._tell_offset(next_offset, known=False)
            await self._producer.end(commit=commit)
            decided = commit
        finally:
            self._history.tell(TransactionEnded(name, written, decided))
        self._client.tell(f"{'copied' if commit else 'aborted the copy of'} up to {next_offset}")
        if commit:
            self._tell_offset(next_offset, known=True)
        return commit

    def _tell_offset(self, offset: int, *, known: bool) -> None:
        self._history.tell(
            OffsetCommitted(self._group, self._source, offset, self._client.now, known)
        )


def copied_offset(value: bytes) -> tuple[str, int]:
    """Which record a value is the copy of: its partition and offset."""
    source, offset, _ = value.split(b" ", 2)
    if not offset.isdigit():
        raise Violation(f"{value!r} is no copy")
    return source.decode(), int(offset)
