"""The coordinators of a node: of groups, of transactions and of share groups.

Each begins when the partition that it lives on is taken up, and ends when another node leads it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.coordination.coordinators import Coordinators
from ottla.coordination.serving_coordinators import ServingCoordinators
from ottla.coordination.share_groups import ShareGroups
from ottla.groups.config import GroupConfig
from ottla.node.group_coordinators import group_coordinators
from ottla.node.parts import Parts
from ottla.node.replication import ask_broker
from ottla.node.share_groups import make_share_groups, share_coordinator_on
from ottla.node.transaction_drivers import TransactionDrivers, transaction_drivers
from ottla.protocol.addresses import Address
from ottla.runtime.controller import Controller
from ottla.transactions.config import TransactionConfig

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine

_ASK_TIMEOUT_MS = 1_000  # A client waits for it, and tries again.


class Coordination(NamedTuple):
    groups: "Coordinators[GroupMachine]"
    transactions: TransactionDrivers
    share: ShareGroups
    elsewhere: ServingCoordinators


def start_coordination(
    parts: Parts, controller: Controller, address_of: Callable[[int], Address | None]
) -> Coordination:
    """`address_of` tells where another broker is reached."""
    values, image, replicas = parts.values, parts.feed.image, parts.replicas
    supervisor, peers, loop = parts.supervisor, parts.peers, parts.loop
    clock, executor = parts.environment.clock, parts.environment.executor
    share = make_share_groups(
        parts.node_id,
        replicas,
        image,
        values,
        parts.group_configs.share,
        controller,
        lambda broker_id: share_coordinator_on(broker_id, address_of, peers, loop),
        partial(ask_broker, peers, address_of, "dead letters"),
        clock,
        parts.environment.random,
        supervisor,
        loop,
        executor,
    )
    supervisor.start("share state pruning", share.pruning.run())
    supervisor.start("waiting dead letters", share.waiting_letters.run())
    groups = group_coordinators(
        GroupConfig.of(values), parts.group_configs, image, parts.environment, supervisor
    )
    replicas.listen(groups.leadership_listener)
    transactions = transaction_drivers(
        parts.node_id,
        TransactionConfig.of(values),
        image,
        replicas,
        groups,
        partial(ask_broker, peers, address_of),
        clock,
        supervisor,
        executor,
    )
    replicas.listen(transactions.coordinators.leadership_listener)
    ask = partial(ask_broker, peers, address_of, "coordinators", timeout_ms=_ASK_TIMEOUT_MS)
    return Coordination(groups, transactions, share, ServingCoordinators(ask, supervisor))
