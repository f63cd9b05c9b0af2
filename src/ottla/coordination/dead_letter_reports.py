"""Reports to the operator that dead letters cannot be written: when it starts, rarely while it
lasts, and when it ends. What affects many partitions of a group is reported once."""

import logging
from dataclasses import field
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topics import TopicPartition

logger = logging.getLogger(__name__)

FIRST_INTERVAL_MS: Final = 60_000.0  # Between reports; doubles after each.
INTERVAL_MAX_MS: Final = 3_600_000.0


class Waiting(NamedTuple):
    """Letters of one partition of a share group that cannot be written yet."""

    group_id: str
    source: TopicPartition
    topic: str  # The destination of the letters.
    letters_count: int
    is_blocking: bool  # The group receives nothing more from the partition.


@dataclass(slots=True)
class _Trouble:
    since_ms: float
    report_ms: float
    interval_ms: float = FIRST_INTERVAL_MS
    waiting: dict[object, Waiting] = field(default_factory=dict)

    def summary(self) -> str:
        count = sum(each.letters_count for each in self.waiting.values())
        return f"{count} wait, of {_named(self.waiting)}"


class DeadLetterReports:
    def __init__(self) -> None:
        self._troubles: dict[tuple[str, str], _Trouble] = {}  # By group and dead-letter topic.

    def on_failed(self, key: object, waiting: Waiting, error: ApiError, now_ms: float) -> None:
        """`key` identifies the share-partition."""
        group_and_topic = waiting.group_id, waiting.topic
        trouble = self._troubles.get(group_and_topic)
        if trouble is None:
            trouble = self._troubles[group_and_topic] = _Trouble(now_ms, now_ms + FIRST_INTERVAL_MS)
            logger.warning(
                "share group %s cannot write dead letters to %s, retrying: %s",
                *(*group_and_topic, error),
            )
        before = trouble.waiting.get(key)
        trouble.waiting[key] = waiting
        if waiting.is_blocking and (before is None or not before.is_blocking):
            _warn_of_block(waiting, error)
        if now_ms >= trouble.report_ms:
            trouble.interval_ms = min(trouble.interval_ms * 2, INTERVAL_MAX_MS)
            trouble.report_ms = now_ms + trouble.interval_ms
            logger.warning(
                "share group %s cannot write dead letters to %s for %d s (%s): %s",
                *(*group_and_topic, (now_ms - trouble.since_ms) / 1000, trouble.summary(), error),
            )

    def on_written(self, key: object, group_id: str, topic: str, now_ms: float) -> None:
        trouble = self._troubles.get((group_id, topic))
        if trouble is not None and self._end(key, group_id, topic):
            since_s = (now_ms - trouble.since_ms) / 1000
            logger.info(
                "share group %s writes dead letters to %s again, after %d s",
                *(group_id, topic, since_s),
            )

    def forget(self, key: object) -> None:
        """Another broker leads the share-partition, or its letters are no longer wanted."""
        for group_and_topic in list(self._troubles):
            self._end(key, *group_and_topic)

    def _end(self, key: object, group_id: str, topic: str) -> bool:
        """Whether it was the last one with a problem."""
        waiting = self._troubles[group_id, topic].waiting
        waiting.pop(key, None)
        if not waiting:
            del self._troubles[group_id, topic]
        return not waiting


def _warn_of_block(waiting: Waiting, error: ApiError) -> None:
    logger.warning(
        "share group %s gets no more records of %s: %d dead letters for %s cannot be written: %s."
        " It resumes when they are, when errors.deadletterqueue.pending.max.records of the group"
        " is larger, or when its errors.deadletterqueue.topic.name is empty, which drops them.",
        *(waiting.group_id, waiting.source, waiting.letters_count, waiting.topic, error),
    )


def _named(waiting: dict[object, Waiting]) -> str:
    names = sorted(str(each.source) for each in waiting.values())
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}"
