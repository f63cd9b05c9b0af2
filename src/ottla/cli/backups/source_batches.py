"""Batches of a partition of another cluster, in order and up to an offset."""

from collections.abc import Iterator
from typing import Final

from ottla.cli.backups.parallel import RETRY_MS, Patience
from ottla.cli.backups.whole_batches import WholeBatches, whole_batches
from ottla.cli.errors import CommandError
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.fetching import Fetcher
from ottla.protocol.errors import ErrorCode

# A broker that throttles a client answers with nothing, so it is asked more than once.
EMPTY_ANSWERS_MAX: Final = 6


def source_batches(
    fetcher: Fetcher,
    topic_partition: TopicPartition,
    offset: int,
    end_offset: int,
    *,
    retry_ms: int = RETRY_MS,
) -> Iterator[WholeBatches]:
    """All between the offsets; the last ones end at `end_offset`, if only as a gap. Their records
    are good until the next ones are asked for.

    A new leader cannot return all of them until its followers have confirmed them, so a log that
    ends too early is read again, for `retry_ms`.
    """
    empty_count = 0
    patience = Patience(retry_ms)
    while offset < end_offset:
        fetched = fetcher.fetch(offset)
        found = whole_batches(fetched.records, topic_partition, offset, end_offset)
        if found.next_offset == offset:
            if fetched.last_stable_offset < end_offset:
                _await_followers(patience, topic_partition, fetched.last_stable_offset, end_offset)
                continue
            empty_count += 1
            if found.is_past_end or empty_count > EMPTY_ANSWERS_MAX:
                yield found._replace(next_offset=end_offset)
                return
            continue
        empty_count = 0
        patience = Patience(retry_ms)
        if found.next_offset < end_offset:
            fetcher.ask(found.next_offset)
        yield found
        offset = found.next_offset


def _await_followers(
    patience: Patience, topic_partition: TopicPartition, last_stable_offset: int, end_offset: int
) -> None:
    text = f"{topic_partition} ends at {last_stable_offset}, and ended at {end_offset}"
    try:
        patience.wait(BrokerError(ErrorCode.offset_not_available, text), progressed=False)
    except BrokerError:
        raise CommandError(text) from None
