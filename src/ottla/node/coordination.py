"""The coordinators of a node: of groups, of transactions and of share groups.

Each begins when the partition that it lives on is taken up, and ends when another node leads it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.controller.image import MetadataImage
from ottla.groups.config import GroupConfig
from ottla.network.peers import Address, Peers
from ottla.node.environment import Environment
from ottla.node.group_configs import GroupConfigs
from ottla.node.group_coordinators import group_coordinators
from ottla.node.replication import ask_broker
from ottla.node.share_groups import make_share_groups, share_coordinator_on
from ottla.node.transaction_drivers import TransactionDrivers, transaction_drivers
from ottla.protocol.config import ConfigValues
from ottla.replication.coordinators import Coordinators
from ottla.replication.manager import ReplicaManager
from ottla.replication.share_groups import ShareGroups
from ottla.runtime.controller_client import ControllerClient
from ottla.runtime.supervisor import Supervisor
from ottla.transactions.config import TransactionConfig

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine


class Coordination(NamedTuple):
    groups: "Coordinators[GroupMachine]"
    transactions: TransactionDrivers
    share: ShareGroups


def start_coordination(
    node_id: int,
    values: ConfigValues,
    group_configs: GroupConfigs,
    image: MetadataImage,
    replicas: ReplicaManager,
    controller: ControllerClient,
    peers: Peers,
    address_of: Callable[[int], Address | None],
    environment: Environment,
    supervisor: Supervisor,
) -> Coordination:
    """`address_of` tells where another broker is reached."""
    clock, executor = environment.clock, environment.executor
    share = make_share_groups(
        node_id,
        replicas,
        image,
        values,
        group_configs.share,
        controller,
        lambda broker_id: share_coordinator_on(broker_id, address_of, peers, supervisor.loop),
        clock,
        supervisor,
        supervisor.loop,
        executor,
    )
    supervisor.start("dead letters", share.partitions.send_dead_letters())
    supervisor.start("share state pruning", share.pruning.run())
    groups = group_coordinators(
        GroupConfig.of(values), group_configs, image, environment, supervisor
    )
    replicas.listen(groups.leadership_listener)
    transactions = transaction_drivers(
        node_id,
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
    return Coordination(groups, transactions, share)
