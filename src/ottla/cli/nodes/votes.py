"""The vote of a node that is to leave: another gets it before the node is stopped, if one can."""

import time

from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
from kio.static.primitive import i32

from ottla.cli.broker_call import BrokerCall, check
from ottla.cli.cluster_nodes import Quorum
from ottla.protocol.errors import ErrorCode

POLL_S = 0.2
HAND_OVER_S_MAX = 10.0


def hand_over_vote(broker: BrokerCall, node: int) -> None:
    """Of a node that is drained. The nodes see to it; where none can, the quorum gets smaller."""
    deadline = time.monotonic() + HAND_OVER_S_MAX
    while (quorum := broker.quorum()) is not None and node in quorum.voters:
        if time.monotonic() > deadline or not _can_be_replaced(broker, quorum):
            if len(quorum.voters) > 1:
                remove_voter(broker, quorum, node)
            return
        time.sleep(POLL_S)


def remove_voter(broker: BrokerCall, quorum: Quorum, node: int) -> None:
    """Also if it was removed meanwhile."""
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=i32(node), voter_directory_id=quorum.voters[node]
    )
    response = broker.call(request)
    if response.error_code is not ErrorCode.voter_not_found:
        check(response.error_code, f"node {node}", response.error_message)


def _can_be_replaced(broker: BrokerCall, quorum: Quorum) -> bool:
    return any(node.active and node.node_id not in quorum.voters for node in broker.plan_nodes())
