"""The records of `__consumer_offsets`, as Kafka lays them out.

A record is a pair of a key and a value. The key's first two bytes say which family the record
belongs to (`RECORD_TYPE` of the key class), the value's first two bytes its version. A value of
None is a tombstone: the thing that the key names is gone.

The classes of keys and values describe their newest layout. Field metadata narrows a field to the
versions that have it: `since` is the first one, `until` the last one.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Protocol

from kio.static.constants import EntityType

from ottla.protocol.entities import entity
from ottla.protocol.lazy_dataclass import dataclass


class RecordKey(Protocol):
    RECORD_TYPE: ClassVar[int]


class RecordValue(Protocol):
    @property
    def version_written(self) -> int: ...

    VERSIONS_READ: ClassVar[range]
    FLEXIBLE_SINCE: ClassVar[int]


@dataclass(frozen=True, slots=True)
class Record:
    key: RecordKey
    value: RecordValue | None


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A record of a family that this version does not know; replay passes over it."""

    record_type: int


class KeyLayout:
    """Keys are never flexible, and a family has one layout of key for ever."""

    __slots__ = ()
    RECORD_TYPE: ClassVar[int]
    __type__: ClassVar = EntityType.data
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False


class ValueLayout:
    """Of a family whose value has had one layout since it began."""

    __slots__ = ()
    version_written: ClassVar[int] = 0
    VERSIONS_READ: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0


def wire(kafka_type: str, **rest: int) -> Mapping[str, object]:
    """The metadata of a field: its wire type, and `since`, `until` and `tag` where they apply."""
    return {"kafka_type": kafka_type, **rest}


@entity
class GroupKey(KeyLayout):
    group_id: str = field(metadata=wire("string"))


@entity
class MemberKey(KeyLayout):
    group_id: str = field(metadata=wire("string"))
    member_id: str = field(metadata=wire("string"))
