"""The result of an operation on a machine.

An operation changes nothing. It returns the records that would make the change and the response
that is true once they are committed. The runtime appends the records, replays them into the machine
(the only place where state changes), and sends the response once they are committed.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass

R = TypeVar("R")


class Deferred(Generic[R]):
    """A response that a later operation supplies, such as a JoinGroup that waits for the others.

    A machine never settles a Deferred itself: it lists it in `Result.completions`, and the runtime
    settles it once the records of that result are committed.
    """

    __slots__ = ("_callbacks", "_outcome")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[R | ApiError], None]] = []
        self._outcome: R | ApiError | None = None

    @property
    def settled(self) -> bool:
        return self._outcome is not None

    def settle(self, outcome: R | ApiError) -> None:
        """The first outcome counts; a later one is ignored, because the waiter has its answer."""
        if self._outcome is not None:
            return
        self._outcome = outcome
        for callback in self._callbacks:
            callback(outcome)
        self._callbacks.clear()

    def when_settled(self, callback: Callable[[R | ApiError], None]) -> None:
        if self._outcome is None:
            self._callbacks.append(callback)
        else:
            callback(self._outcome)


@dataclass(frozen=True, slots=True)
class Completion(Generic[R]):
    """Settle `deferred` with `outcome` once the records of the result are committed."""

    deferred: Deferred[R]
    outcome: R | ApiError


class Result(NamedTuple, Generic[R]):
    response: R | Deferred[R]
    records: tuple[object, ...] = ()  # Appended as one atomic batch, in this order.
    completions: tuple[Completion[object], ...] = ()
    cause: str = ""  # Why the records are written, for the operators' log.
    # External effects, performed once the records are committed and before the response leaves.
    # They are lost with the node, so a machine that is loaded emits those that are not done.
    effects: tuple[object, ...] = ()
