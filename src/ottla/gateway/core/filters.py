"""Record filters: by partition, by key, by header.

An empty filter matches everything. Values of one kind are alternatives; kinds are combined: a
record matches if its partition, its key and each named header do.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.records.builder import Record

VALUES_MAX = 100


class Filter(NamedTuple):
    partitions: frozenset[int] = frozenset()
    keys: frozenset[bytes] = frozenset()
    headers: tuple[tuple[str, frozenset[bytes]], ...] = ()

    def matches(self, partition: int, record: Record) -> bool:
        if self.partitions and partition not in self.partitions:
            return False
        if self.keys and record.key not in self.keys:
            return False
        return all(
            any(name == key and value in values for key, value in record.headers)
            for name, values in self.headers
        )

    def wanted(self, partitions: Collection[int]) -> list[int]:
        """The topic's partitions that may hold a matching record."""
        return sorted(p for p in partitions if not self.partitions or p in self.partitions)

    def as_json(self) -> dict[str, object]:
        """The form that `parse_filter` reads, without unset parts."""
        found: dict[str, object] = {}
        if self.partitions:
            found["partitions"] = sorted(self.partitions)
        if self.keys:
            found["keys"] = sorted(key.decode(errors="replace") for key in self.keys)
        if self.headers:
            found["headers"] = {
                name: sorted(value.decode(errors="replace") for value in values)
                for name, values in self.headers
            }
        return found


EVERYTHING = Filter()


def parse_filter(data: object) -> Filter:
    """From JSON: `{"partitions": [0], "keys": ["a"], "headers": {"ce_type": ["order"]}}`.

    A single value needs no list. Raises ValueError with the reason.
    """
    if data is None:
        return EVERYTHING
    if not isinstance(data, Mapping):
        raise ValueError("a filter is an object")
    unknown = sorted(set(data) - {"partitions", "keys", "headers"})
    if unknown:
        raise ValueError(f"a filter has partitions, keys and headers, not {unknown[0]!r}")
    headers = data.get("headers", {})
    if not isinstance(headers, Mapping) or not all(isinstance(name, str) for name in headers):
        raise ValueError("the headers of a filter are an object: a name, and its values")
    if len(headers) > VALUES_MAX:
        raise ValueError(f"a filter names at most {VALUES_MAX} headers")
    return Filter(
        partitions=frozenset(_partition(item) for item in _values(data.get("partitions", ()))),
        keys=frozenset(_text(item) for item in _values(data.get("keys", ()))),
        headers=tuple(
            (name, frozenset(_text(item) for item in _values(values)))
            for name, values in headers.items()
        ),
    )


def _values(data: object) -> Collection[object]:
    values = data if isinstance(data, (list, tuple)) else (data,)
    if len(values) > VALUES_MAX:
        raise ValueError(f"a filter names at most {VALUES_MAX} values of a kind")
    return values


def _partition(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{value!r} is not a partition")
    return value


def _text(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value.encode()
