"""Chooses the voters of the metadata quorum: spread over as many racks as possible.

Shards of one machine are in one rack. The first machine of a cluster has all the voters; a node in
a rack with two fewer joins them, and then the crowded rack gives one up. Likewise another node
replaces a voter that is being drained, before that one is stopped.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple


class Candidate(NamedTuple):
    node_id: int
    rack: str | None
    drained: bool = False

    @property
    def key(self) -> str | int:
        """A node without a rack counts as its own rack."""
        return self.rack or self.node_id


def should_vote(
    me: Candidate,
    voters: Collection[Candidate],
    candidates: Collection[Candidate],
    quorum_size: int,
) -> bool:
    """Whether a non-voter should vote; `candidates` are all that could."""
    if len(voters) != quorum_size:
        return len(voters) < quorum_size
    ids = {voter.node_id for voter in voters}
    rivals = [candidate for candidate in candidates if candidate.node_id not in ids]
    if not any(voter.drained for voter in voters):
        counts = Counter(voter.key for voter in voters)
        if max(counts.values()) < counts[me.key] + 2:
            return False
        rivals = [rival for rival in rivals if rival.key == me.key]
    return me.node_id == min((rival.node_id for rival in rivals), default=me.node_id)


def surplus_voter(
    voters: Sequence[Candidate], leader_id: int, quorum_size: int
) -> Candidate | None:
    """A surplus voter: it is drained, or it shares its rack with others and does not lead."""
    if len(voters) <= quorum_size:
        return None
    drained = [voter for voter in voters if voter.drained]
    if drained:
        return next((voter for voter in drained if voter.node_id != leader_id), drained[0])
    counts = Counter(voter.key for voter in voters)
    key, count = max(counts.items(), key=lambda item: item[1])
    if count < 2:
        return None
    return max(voter for voter in voters if voter.key == key and voter.node_id != leader_id)
