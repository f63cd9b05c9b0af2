"""The coordinators of a node: of groups, of transactions and of share groups.

Each starts when this node begins to lead its partition, and ends when another node does.
"""

from typing import TYPE_CHECKING, NamedTuple

from ottla.coordination.coordinators import Coordinators
from ottla.coordination.serving_coordinators import ServingCoordinators
from ottla.coordination.share_groups import ShareGroups
from ottla.handlers.broker import TransactionDrivers
from ottla.node.group_coordinators import group_coordinators
from ottla.node.node_parts import Parts
from ottla.node.share_groups import LOOKUP_TIMEOUT_MS, make_share_groups
from ottla.node.transaction_drivers import transaction_drivers
from ottla.runtime.controller import Controller

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine


class Coordination(NamedTuple):
    groups: "Coordinators[GroupMachine]"
    transactions: TransactionDrivers
    share: ShareGroups
    elsewhere: ServingCoordinators


def start_coordination(parts: Parts, controller: Controller) -> Coordination:
    replicas, supervisor = parts.replicas, parts.process.supervisor
    share = make_share_groups(parts, controller)
    supervisor.start("share state pruning", share.pruning.run())
    supervisor.start("waiting dead letters", share.waiting_letters.run())
    groups = group_coordinators(parts)
    replicas.leadership_listeners.append(groups.leadership_listener)
    transactions = transaction_drivers(parts, groups)
    replicas.leadership_listeners.append(transactions.coordinators.leadership_listener)
    ask = parts.brokers.asking("coordinators", LOOKUP_TIMEOUT_MS)
    return Coordination(groups, transactions, share, ServingCoordinators(ask, supervisor))
