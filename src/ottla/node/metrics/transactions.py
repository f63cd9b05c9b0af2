"""Transactions: those of the coordinators here, and those open in the logs here."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.coordination.coordinators import Coordinators
from ottla.node.metrics.family import Section, copied
from ottla.protocol.errors import ApiError
from ottla.replication.manager import ReplicaManager
from ottla.storage.producer_state import ProducerStateManager

if TYPE_CHECKING:
    from ottla.transactions.coordinator import TransactionMachine

SECTION = Section("Transactions")

_STATES = SECTION.gauge(
    "ottla_transactional_ids",
    "Transactional ids that are coordinated here, by the state of their last transaction.",
    ("state",),
)
_OPEN = SECTION.gauge(
    "ottla_open_transactions",
    "Transactions that are open in partitions led here, one for each partition.",
)
_HANGING = SECTION.gauge(
    "ottla_hanging_transactions",
    "Open transactions without a write for longer than transaction.max.timeout.ms: nobody ends "
    "them, and read_committed consumers wait.",
)


def collect(
    coordinators: "Coordinators[TransactionMachine]",
    replicas: ReplicaManager,
    now_ms: int,
    *,
    timeout_ms: int,
) -> Iterator[str]:
    states: Counter[str] = Counter()
    for runtime in coordinators.all():
        try:
            states.update(copied(runtime.machine.states))
        except ApiError:
            continue  # It is loading.
    yield from _STATES.by(sorted(states.items()))
    written_ms = [
        each
        for partition in copied(replicas.partitions)
        if partition.is_leader
        for each in _last_writes(partition.log.producers)
    ]
    yield from _OPEN.line(len(written_ms))
    yield from _HANGING.line(sum(each < now_ms - timeout_ms for each in written_ms))


def _last_writes(producers: ProducerStateManager) -> list[int]:
    if producers.first_undecided_offset is None:
        return []
    return [entry.last_timestamp for entry in copied(producers.with_open_transactions)]
