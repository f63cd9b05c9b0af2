"""A mapping with changes layered over another one, which stays unchanged.

Its cost depends on the changes, however large the mapping below is, which must not change
meanwhile.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_UNCHANGED: Final[Any] = object()
_GONE: Final[Any] = object()  # Stands for the value of a removed key.


class Overlay(MutableMapping[K, V], Generic[K, V]):
    __slots__ = ("_below", "_changes", "_growth")

    def __init__(self, below: Mapping[K, V]) -> None:
        self._below = below
        self._changes: dict[Any, Any] = {}
        self._growth = 0  # How many more keys there are than below.

    def get(self, key: K, default: Any = None) -> Any:
        value = self._changes.get(key, _UNCHANGED)
        if value is _UNCHANGED:
            return self._below.get(key, default)
        return default if value is _GONE else value

    def __getitem__(self, key: K) -> V:
        value: V = self.get(key, _GONE)
        if value is _GONE:
            raise KeyError(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._growth += key not in self
        self._changes[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._growth -= 1
        self._changes[key] = _GONE

    def __iter__(self) -> Iterator[K]:
        changes, below = self._changes, self._below
        for key in below:
            if changes.get(key) is not _GONE:
                yield key
        for key, value in changes.items():
            if value is not _GONE and key not in below:
                yield key

    def __len__(self) -> int:
        return len(self._below) + self._growth

    def __contains__(self, key: object) -> bool:
        value = self._changes.get(key, _UNCHANGED)
        return key in self._below if value is _UNCHANGED else value is not _GONE
