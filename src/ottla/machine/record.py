"""The records of coordinators, in Kafka's layout.

A record is a pair of a key and a value. The key's first two bytes are the family of the record
(`RECORD_TYPE` of the key class), the value's first two bytes its version. A value of None is a
tombstone: what the key identifies is gone.

The key and value classes describe their newest layout. Field metadata limits a field to the
versions that have it: `since` is the first one, `until` the last one.
"""

from typing import ClassVar, Protocol

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
    """A record of a family unknown to this version; replay skips it."""

    record_type: int


class KeyLayout:
    """Keys are never flexible, and the key layout of a family never changes."""

    __slots__ = ()
    RECORD_TYPE: ClassVar[int]
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False


class ValueLayout:
    """For a family whose value layout never changed."""

    __slots__ = ()
    version_written: ClassVar[int] = 0
    VERSIONS_READ: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 0
