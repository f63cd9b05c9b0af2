"""The follower's side of an incremental fetch session (KIP-227).

The first request names all partitions; later ones name those with a new position and those no
longer followed. The leader remembers the rest.
"""

from collections.abc import Callable, Iterable
from uuid import UUID

from ottla.protocol.hot_replica_fetch import ReplicaFetchPosition
from ottla.replication.fetch_sessions import next_epoch

ReplicaFetchKey = tuple[UUID, int]  # Topic id and partition.

Topics = list[tuple[UUID, list[ReplicaFetchPosition]]]
Forgotten = list[tuple[UUID, list[int]]]


class ReplicaFetchSession:
    """What the leader knows; `changed` and `forgotten` are what it will be told next."""

    def __init__(self) -> None:
        self.id = 0  # 0 until the leader opens the session.
        self.epoch = 0  # Of the next request.
        self._changed: dict[ReplicaFetchKey, None] = {}
        self._known: set[ReplicaFetchKey] = set()  # The partitions in the session.
        self._forgotten: dict[ReplicaFetchKey, None] = {}

    @property
    def is_open(self) -> bool:
        return self.id != 0

    @property
    def has_news(self) -> bool:
        return bool(self._changed or self._forgotten)

    def change(self, key: ReplicaFetchKey) -> None:
        """Its position has changed."""
        self._changed[key] = None
        self._forgotten.pop(key, None)

    def forget(self, key: ReplicaFetchKey) -> None:
        self._changed.pop(key, None)
        if key in self._known:
            self._forgotten[key] = None

    def take_news(
        self,
        followed: Iterable[ReplicaFetchKey],
        position_of: Callable[[ReplicaFetchKey], ReplicaFetchPosition],
    ) -> tuple[Topics, Forgotten]:
        """For the next request: everything followed if the session is new, else the changes."""
        keys = list(self._changed if self.is_open else followed)
        forgotten = list(self._forgotten) if self.is_open else []
        self._changed.clear()
        self._forgotten.clear()
        self._known.difference_update(forgotten)
        self._known.update(keys)
        positions: dict[UUID, list[ReplicaFetchPosition]] = {}
        for key in keys:
            positions.setdefault(key[0], []).append(position_of(key))
        gone: dict[UUID, list[int]] = {}
        for topic_id, partition in forgotten:
            gone.setdefault(topic_id, []).append(partition)
        return list(positions.items()), list(gone.items())

    def on_sent(self) -> None:
        self.epoch = next_epoch(self.epoch)

    def on_opened(self, session_id: int) -> None:
        """The leader may decline a session (0): then every request names everything."""
        self.id = session_id
        if not session_id:
            self.epoch = 0
            self._known.clear()
            self._changed.clear()
            self._forgotten.clear()
