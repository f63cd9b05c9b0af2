"""In which racks the voters of the metadata quorum are: in as many as there are.

Shards of one machine are in one rack. The first machine of a cluster has all the voters; a node of
a rack that has two fewer joins them, and then the crowded rack gives one up.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple


class Place(NamedTuple):
    node_id: int
    rack: str | None

    @property
    def key(self) -> str | int:
        """A node without a rack is a rack of its own."""
        return self.rack or self.node_id


def should_vote(
    me: Place, voters: Collection[Place], candidates: Collection[Place], quorum_size: int
) -> bool:
    """Whether a node that does not vote should; `candidates` are all that could."""
    if len(voters) < quorum_size:
        return True
    counts = Counter(voter.key for voter in voters)
    if len(voters) > quorum_size or max(counts.values()) < counts[me.key] + 2:
        return False
    ids = {voter.node_id for voter in voters}
    rivals = (one.node_id for one in candidates if one.key == me.key and one.node_id not in ids)
    return me.node_id == min(rivals, default=me.node_id)


def surplus_voter(voters: Sequence[Place], leader_id: int, quorum_size: int) -> int | None:
    """One that is too many and shares its rack with others; the leader stays."""
    counts = Counter(voter.key for voter in voters)
    key, count = max(counts.items(), key=lambda item: item[1], default=(None, 0))
    if len(voters) <= quorum_size or count < 2:
        return None
    return max(one.node_id for one in voters if one.key == key and one.node_id != leader_id)
