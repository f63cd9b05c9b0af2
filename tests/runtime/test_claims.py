from uuid import UUID

import pytest

from ottla.raft.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from ottla.raft.voters import ReplicaKey
from ottla.runtime.claims import Claim, claim_in


def vote(cluster_id: str | None, voter_id: int) -> VoteRequest:
    return VoteRequest(
        cluster_id=cluster_id,
        voter=ReplicaKey(voter_id, UUID(int=9)),
        replica=ReplicaKey(2),
        replica_epoch=4,
        last_offset_epoch=3,
        last_offset=10,
        pre_vote=True,
    )


def begin(cluster_id: str | None, voter_id: int) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(cluster_id, ReplicaKey(voter_id), 3, 4, ())


@pytest.mark.parametrize("own", [None, "new"])
def test_a_member_of_another_cluster_that_calls_this_node_by_its_id_claims_it(
    own: str | None,
) -> None:
    assert claim_in(vote("old", 1), 1, own) == Claim("old", 2)
    assert claim_in(begin("old", 1), 1, own) == Claim("old", 3)


@pytest.mark.parametrize(
    "request_of", [vote(None, 1), vote("new", 1), vote("old", 7), begin("new", 1), begin("old", 7)]
)
def test_others_do_not(request_of: VoteRequest | BeginQuorumEpochRequest) -> None:
    assert claim_in(request_of, 1, "new") is None
    assert claim_in(EndQuorumEpochRequest("old", 3, 4, (), ()), 1, "new") is None
