"""Claims of other nodes to this node's id and address.

The members of a cluster keep calling a node that is gone, with the cluster id and the node id. A
node that restarts there without its disk and begins another cluster learns of it from these calls.
"""

from typing import NamedTuple

from ottla.raft.messages import BeginQuorumEpochRequest, Request, VoteRequest


class Claim(NamedTuple):
    """A member of another cluster takes this node for one of its own."""

    cluster_id: str
    member_id: int  # The sender.


def claim_in(request: Request, node_id: int, cluster_id: str | None) -> Claim | None:
    """`cluster_id` is this node's; None before it has one."""
    if isinstance(request, VoteRequest):
        member_id = request.replica.id
    elif isinstance(request, BeginQuorumEpochRequest):
        member_id = request.leader_id
    else:
        return None
    if request.voter.id != node_id or not request.cluster_id or request.cluster_id == cluster_id:
        return None
    return Claim(request.cluster_id, member_id)
