"""The coordinators of a node: of groups, of transactions and of share groups.

Each starts when this node begins to lead its partition, and ends when another node does.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.coordination.coordinators import Coordinators
from ottla.coordination.remote_log_ends import RemoteLogEnds
from ottla.coordination.serving_coordinators import ServingCoordinators
from ottla.coordination.share_groups import ShareGroups
from ottla.groups.config import GroupConfig
from ottla.node.group_coordinators import group_coordinators
from ottla.node.node_parts import Parts
from ottla.node.replication import ask_broker
from ottla.node.share_groups import make_share_groups, share_coordinator_on
from ottla.node.transaction_drivers import TransactionDrivers, transaction_drivers
from ottla.protocol.addresses import Address
from ottla.runtime.controller import Controller
from ottla.transactions.config import TransactionConfig

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine

_ASK_TIMEOUT_MS = 1_000  # A client waits for it, and retries.


class Coordination(NamedTuple):
    groups: "Coordinators[GroupMachine]"
    transactions: TransactionDrivers
    share: ShareGroups
    elsewhere: ServingCoordinators


def start_coordination(
    parts: Parts, controller: Controller, address_of: Callable[[int], Address | None]
) -> Coordination:
    """`address_of` returns the address of another broker."""
    values, image, replicas = parts.values, parts.feed.image, parts.replicas
    process, peers, supervisor = parts.process, parts.peers, parts.process.supervisor
    share = make_share_groups(
        process,
        node_id=parts.node_id,
        replicas=replicas,
        image=image,
        values=values,
        config=parts.group_configs.share,
        controller=controller,
        coordinator_at=lambda broker_id: share_coordinator_on(
            broker_id, address_of, peers, process.loop
        ),
        ask_to_produce=partial(ask_broker, peers, address_of, "dead letters"),
        log_ends=RemoteLogEnds(
            image,
            partial(ask_broker, peers, address_of, "log ends", timeout_ms=_ASK_TIMEOUT_MS),
        ),
        random=parts.environment.random,
    )
    supervisor.start("share state pruning", share.pruning.run())
    supervisor.start("waiting dead letters", share.waiting_letters.run())
    groups = group_coordinators(
        GroupConfig.of(values), parts.group_configs, image, parts.environment.new_uuid, process
    )
    replicas.listen(groups.leadership_listener)
    transactions = transaction_drivers(
        process,
        node_id=parts.node_id,
        config=TransactionConfig.of(values),
        image=image,
        replicas=replicas,
        groups=groups,
        ask=partial(ask_broker, peers, address_of),
    )
    replicas.listen(transactions.coordinators.leadership_listener)
    ask = partial(ask_broker, peers, address_of, "coordinators", timeout_ms=_ASK_TIMEOUT_MS)
    return Coordination(groups, transactions, share, ServingCoordinators(ask, supervisor))
