"""What drives transactions on this node: the machines over `__transaction_state`, and the writing
of the markers that they decide on.

The machine is imported when this node begins to lead the first of those partitions, because a
broker without transactions starts faster without it.
"""

from typing import TYPE_CHECKING

from ottla.coordination.coordinators import Coordinators
from ottla.coordination.marker_routes import MarkerRoutes
from ottla.coordination.pending_writes import PendingWrites
from ottla.coordination.remote_transactions import RemoteTransactions
from ottla.coordination.transaction_completion import TransactionCompletion
from ottla.coordination.transaction_markers import TransactionMarkers
from ottla.handlers.broker import TransactionDrivers
from ottla.machine.contract import RecordCodec, Timers
from ottla.node.node_parts import Parts
from ottla.protocol.topics import TRANSACTION_STATE_TOPIC
from ottla.transactions.config import TransactionConfig

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine
    from ottla.transactions.coordinator import TransactionMachine


def transaction_drivers(parts: Parts, groups: "Coordinators[GroupMachine]") -> TransactionDrivers:
    config, image, replicas = TransactionConfig.of(parts.values), parts.feed.image, parts.replicas
    process, supervisor = parts.process, parts.process.supervisor

    def create_machine(timers: Timers) -> "TransactionMachine":
        from ottla.transactions.coordinator import TransactionMachine

        return TransactionMachine(config=config, timers=timers)

    def create_codec() -> RecordCodec:
        from ottla.transactions.record_codec import TransactionRecordCodec

        return TransactionRecordCodec()

    coordinators = Coordinators(
        topic=TRANSACTION_STATE_TOPIC,
        catalog=image,
        create_machine=create_machine,
        create_codec=create_codec,
        process=process,
        perform=lambda effect: completion.begin(effect),  # noqa: PLW0108 - made below
    )
    markers = TransactionMarkers(replicas, groups, process.clock.now_ms, process.loop)
    ask = parts.brokers.asking("markers")
    routes = MarkerRoutes(parts.node_id, image, markers.write, ask, supervisor)

    def leader_epoch(partition: int) -> int:
        return replicas.find(TRANSACTION_STATE_TOPIC, partition).leader_epoch

    completion = TransactionCompletion(
        coordinators=coordinators,
        image=image,
        write_marker=routes.write,
        leader_epoch=leader_epoch,
        supervisor=supervisor,
    )
    remote = RemoteTransactions(
        parts.node_id,
        image,
        coordinators.partition_of,
        parts.brokers.asking("transactions"),
        supervisor,
    )
    return TransactionDrivers(
        coordinators, completion, markers, remote, PendingWrites(process.loop)
    )
