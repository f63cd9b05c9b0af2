"""Records of `__share_group_state`: the whole state of a share-partition, and later changes.

0  snapshot: all of it; without a value the state was deleted
1  update: what has changed since the last snapshot, whose epoch it carries

The first two are Kafka's. The third is Ottla's own; a reader that does not know it skips it:

10000  parked: a change of the records that are held or wait for their time. Snapshots say nothing
       about them, except that a state which was deleted has none.

Newer updates do not contain older ones, so this topic is not compacted: instead, what lies before
the last snapshot of every share-partition is pruned, once all parked records are rewritten as well.
"""

import uuid
from dataclasses import field
from typing import Any, ClassVar

from ottla.machine.record import KeyLayout, ValueLayout
from ottla.protocol.entities import entity, wire

DELIVERY_COMPLETE_COUNT_UNKNOWN = -1


@entity
class StateKey(KeyLayout):
    group_id: str = field(metadata=wire("string"))
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partition: int = field(metadata=wire("int32"))


@entity
class StateBatchValue(ValueLayout):
    first_offset: int = field(metadata=wire("int64"))
    last_offset: int = field(metadata=wire("int64"))
    delivery_state: int = field(metadata=wire("int8"))
    delivery_count: int = field(metadata=wire("int16"))


@entity
class ShareSnapshotKey(StateKey):
    RECORD_TYPE: ClassVar[int] = 0


@entity
class ShareSnapshotValue(ValueLayout):
    snapshot_epoch: int = field(metadata=wire("int32"))
    state_epoch: int = field(metadata=wire("int32"))
    leader_epoch: int = field(metadata=wire("int32"))
    start_offset: int = field(metadata=wire("int64"))
    delivery_complete_count: int = field(
        metadata=wire("int32", tag=0), default=DELIVERY_COMPLETE_COUNT_UNKNOWN
    )
    create_timestamp: int = field(metadata=wire("int64"))
    write_timestamp: int = field(metadata=wire("int64"))
    state_batches: tuple[StateBatchValue, ...]


@entity
class ShareUpdateKey(StateKey):
    RECORD_TYPE: ClassVar[int] = 1


@entity
class ShareUpdateValue(ValueLayout):
    snapshot_epoch: int = field(metadata=wire("int32"))
    leader_epoch: int = field(metadata=wire("int32"))
    start_offset: int = field(metadata=wire("int64"))  # -1 if it has not moved.
    delivery_complete_count: int = field(
        metadata=wire("int32", tag=0), default=DELIVERY_COMPLETE_COUNT_UNKNOWN
    )
    state_batches: tuple[StateBatchValue, ...]


@entity
class ShareParkedKey(StateKey):
    RECORD_TYPE: ClassVar[int] = 10_000


@entity
class ShareParkedValue(ValueLayout):
    change: bytes = field(metadata=wire("bytes"))  # See ParkedChange.


SHARE_STATE_FAMILIES: dict[int, tuple[type[Any], type[Any]]] = {
    ShareSnapshotKey.RECORD_TYPE: (ShareSnapshotKey, ShareSnapshotValue),
    ShareUpdateKey.RECORD_TYPE: (ShareUpdateKey, ShareUpdateValue),
    ShareParkedKey.RECORD_TYPE: (ShareParkedKey, ShareParkedValue),
}
