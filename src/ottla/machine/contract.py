"""The contract between a machine and the runtime that drives it."""

from collections.abc import Callable, Iterable
from typing import Protocol

from ottla.machine.result import Result


class Machine(Protocol):
    """Pure state: the same records in the same order produce the same state."""

    def replay(self, record: object, timestamp_ms: int) -> None:
        """Apply one record. The only place where state changes, and all it does; it cannot fail."""

    def snapshot(self) -> Iterable[object]:
        """Immutable records that, replayed into a new machine, reproduce this state."""

    def on_loaded(self, now_ms: int) -> None:
        """The state is complete and this node leads: schedule the timers that follow from it."""


class RecordCodec(Protocol):
    """Converts a machine's records to the key and value of a log record and back."""

    def encode(self, record: object) -> tuple[bytes | None, bytes | None]: ...

    def decode(self, key: bytes | None, value: bytes | None) -> object:
        """Raises ValueError if the bytes are not a record of this machine."""


# Called with now_ms, which is never before the deadline; an operation like any other.
Expiry = Callable[[int], Result[None]]


class Timers(Protocol):
    """Keyed timers. Scheduling a key again replaces its timer."""

    def schedule(self, key: str, deadline_ms: int, expiry: Expiry) -> None: ...

    def cancel(self, key: str) -> None: ...
