"""Answers of a remote transaction coordinator about a partition, while they hold.

Between the coordinator's answer that a producer's transaction is open and the append that it
allows, the marker that ends the transaction may arrive. A later append would stay open forever; so
the marker voids the answer. A guard is taken before the coordinator is asked.
"""

from ottla.protocol.lazy_dataclass import dataclass


@dataclass(slots=True, eq=False)
class Guard:
    """Guards one write of one producer."""

    producer_id: int
    voiding_epoch: int
    is_void: bool = False
    is_led_elsewhere: bool = False  # Or was: nothing is known about the transaction.

    @property
    def holds(self) -> bool:
        return not (self.is_void or self.is_led_elsewhere)


class TransactionGuards:
    """Those of one partition."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: list[Guard] = []  # Few at a time.

    def __bool__(self) -> bool:
        return bool(self._guards)

    def take(self, producer_id: int, voiding_epoch: int) -> Guard:
        """Voided by markers of the producer with this epoch or a later one.

        While every end raises the epoch (KIP-890), a marker with the producer's own epoch belongs
        to the previous transaction, which the coordinator may have waited for.
        """
        guard = Guard(producer_id, voiding_epoch)
        self._guards.append(guard)
        return guard

    def release(self, guard: Guard) -> None:
        if guard in self._guards:
            self._guards.remove(guard)

    def on_marker(self, producer_id: int, producer_epoch: int) -> None:
        for guard in tuple(self._guards):
            if guard.producer_id == producer_id and producer_epoch >= guard.voiding_epoch:
                guard.is_void = True
                self._guards.remove(guard)

    def void_all(self) -> None:
        """Another broker leads, and its markers are not seen here."""
        for guard in self._guards:
            guard.is_led_elsewhere = True
        self._guards.clear()
