"""Compares a history with the cluster's contents at the end; each finding is one line of text.

lost         acknowledged, but missing, or not at the acknowledged offset
duplicated   there twice, though its producer is idempotent
out of order after a record that its producer, an idempotent one, wrote later
changed      read by a consumer, but no longer there
not read     there, but no consumer of the group has read it
torn         a transaction that is only partly there
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.cluster.faults.history import Copied, History, Partition, Written

# Offsets and values, in the log's order.
Contents = Mapping[Partition, Sequence[tuple[int, bytes]]]


def check(history: History, contents: Contents) -> list[str]:
    """Broken promises to clients of the topics in `contents`."""
    found = list(history.problems)
    for topic_partition, records in contents.items():
        found += _check_acked(history, topic_partition, records)
        found += _check_order(history, topic_partition, records)
        found += _check_consumed(history, topic_partition, records)
    return found


def check_group(history: History, contents: Contents) -> list[str]:
    """Checks that a group has read everything, once it had enough time."""
    return [
        f"not read: {topic_partition} offset {offset}"
        for topic_partition, records in contents.items()
        for offset, _ in records
        if offset not in history.consumed[topic_partition]
    ]


def _check_acked(
    history: History, topic_partition: Partition, records: Sequence[tuple[int, bytes]]
) -> Iterator[str]:
    there = dict(records)
    values = set(there.values())
    for written, offset in history.acked[topic_partition].items():
        if offset is None and written.encode() in values:
            continue
        value = None if offset is None else there.get(offset)
        if value != written.encode():
            yield f"lost: {written} of {topic_partition} at offset {offset}, which holds {value!r}"


def _check_order(
    history: History, topic_partition: Partition, records: Sequence[tuple[int, bytes]]
) -> Iterator[str]:
    """A writer that is not idempotent may repeat itself, and send a record after a later one.

    librdkafka does so when a partition changes leaders during a request, even with one request at a
    time, because that limit is per broker.
    """
    latest: dict[str, int] = {}
    seen: set[Written] = set()
    for offset, value in records:
        written = Written.decode(value)
        if written.writer not in history.idempotent:
            continue
        if written in seen:
            yield f"duplicated: {written} of {topic_partition} at offset {offset}"
            continue
        seen.add(written)
        if written.number < latest.get(written.writer, -1):
            yield f"out of order: {written} of {topic_partition} at offset {offset}"
        latest[written.writer] = written.number


def _check_consumed(
    history: History, topic_partition: Partition, records: Sequence[tuple[int, bytes]]
) -> Iterator[str]:
    there = dict(records)
    for offset, value in history.consumed[topic_partition].items():
        now = there.get(offset)
        if now != value:
            yield f"changed: {value!r} was read from {topic_partition} at {offset}, now {now!r}"


def check_copies(history: History, sources: Contents, copies: Contents) -> list[str]:
    """`copies` as a read_committed consumer sees them."""
    there = [Copied.decode(value) for records in copies.values() for _, value in records]
    found = list(_check_transactions(history, there))
    counts = Counter((copy.source, copy.offset) for copy in there)
    for topic_partition, records in sources.items():
        for offset, _ in records:
            count = counts[topic_partition, offset]
            if count != 1:
                found.append(f"copied {count} times: {topic_partition} offset {offset}")
    return found


def _check_transactions(history: History, there: Sequence[Copied]) -> Iterator[str]:
    sizes: dict[tuple[str, int], int] = defaultdict(int)
    for copy in there:
        sizes[copy.writer, copy.transaction] += 1
    for transaction in history.transactions:
        size = sizes.pop((transaction.writer, transaction.number), 0)
        allowed = {
            True: (transaction.size,),
            False: (0,),
            None: (0, transaction.size),
        }[transaction.committed]
        if size not in allowed:
            yield f"torn: {size} records of {transaction} are there"
    for key in sizes:
        yield f"torn: transaction {key} is there, and its writer does not know it"
