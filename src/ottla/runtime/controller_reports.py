"""Reports to operators what the controller does with brokers and partitions, and why.

Only the active controller reports, once the change is committed. The cause comes with the
operation's result; the changes follow from comparing its records with the state before them.
"""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ottla.controller.image import MetadataImage
from ottla.controller.machine import ControllerMachine
from ottla.controller.records import (
    FENCE,
    LEADER_UNCHANGED,
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.machine.result import Completion, Deferred, Result
from ottla.runtime.log_summaries import LogSummaries

logger = logging.getLogger(__name__)

_LEADER: Final = "new leader"


class _Change(NamedTuple):
    """A change of a partition: see `LogSummaries.note_partition`."""

    what: str
    detail: str
    partition: str
    level: int = logging.INFO


class ControllerReports:
    def __init__(self, loop: AbstractEventLoop) -> None:
        self._summaries = LogSummaries(loop, logger)

    def observe(self, machine: ControllerMachine, result: Result[Any]) -> Result[Any]:
        """Call before the records are replayed; the result returned reports once committed."""
        level = _broker_level(machine.image, result.records)
        changes = list(_partition_changes(machine.image, result.records))
        if level is None and not changes:
            return result
        committed: Deferred[object] = Deferred()
        committed.when_settled(lambda _: self._report(result.cause, level, changes))
        completion: Completion[object] = Completion(committed, True)
        return result._replace(completions=(*result.completions, completion))

    def _report(self, cause: str, level: int | None, changes: list[_Change]) -> None:
        cause = cause or "the metadata was changed"
        if level is not None:
            self._summaries.note(cause, level)
        for change in sorted(changes, key=lambda change: change.what != _LEADER):
            self._summaries.note_partition(cause, *change)


def _broker_level(image: MetadataImage, records: tuple[object, ...]) -> int | None:
    """None if the records concern no broker."""
    levels = []
    for record in records:
        if isinstance(record, BrokerRegistrationChangeRecord):
            is_expected = image.brokers[record.broker_id].in_controlled_shutdown
            is_bad = record.fenced == FENCE and not is_expected
            levels.append(logging.WARNING if is_bad else logging.INFO)
        elif isinstance(record, RegisterBrokerRecord | UnregisterBrokerRecord):
            levels.append(logging.INFO)
    return max(levels, default=None)


def _partition_changes(image: MetadataImage, records: tuple[object, ...]) -> Iterator[_Change]:
    """A broker that has just registered leads again once it has read the metadata."""
    is_restart = any(isinstance(record, RegisterBrokerRecord) for record in records)
    leaderless_level = logging.INFO if is_restart else logging.WARNING
    for record in records:
        if isinstance(record, PartitionChangeRecord):
            topic = image.topics_by_id.get(record.topic_id)
            before = None if topic is None else topic.partitions.get(record.partition_id)
            if topic is not None and before is not None:
                name = f"{topic.name}-{record.partition_id}"
                yield from _changes_of(name, before, record, leaderless_level)


def _changes_of(
    partition: str, before: PartitionRecord, record: PartitionChangeRecord, leaderless_level: int
) -> Iterator[_Change]:
    if record.leader not in (LEADER_UNCHANGED, before.leader):
        level = leaderless_level if record.leader == NO_LEADER else logging.INFO
        detail = f"{_leader_text(before.leader)} -> {_leader_text(record.leader)}"
        yield _Change(_LEADER, detail, partition, level)
    if record.isr is not None:
        for detail in isr_details(before.isr, record.isr):
            yield _Change("in-sync replicas", detail, partition)


def _leader_text(leader: int) -> str:
    return "none" if leader == NO_LEADER else str(leader)


def isr_details(before: tuple[int, ...], after: tuple[int, ...]) -> Iterator[str]:
    gone = sorted(set(before) - set(after))
    new = sorted(set(after) - set(before))
    if gone:
        yield f"without {', '.join(map(str, gone))}"
    if new:
        yield f"with {', '.join(map(str, new))}"
