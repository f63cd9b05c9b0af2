"""The effects of an operation, collected while it runs."""

from typing import Any, TypeVar

from ottla.machine.result import Completion, Deferred, Result

R = TypeVar("R")


class Effects:
    __slots__ = ("completions", "records")

    def __init__(self) -> None:
        self.records: list[object] = []
        self.completions: list[Completion[Any]] = []

    def answer(self, deferred: Deferred[R], response: R) -> None:
        """Send the parked reply once the records of this operation are committed."""
        self.completions.append(Completion(deferred, response))

    def result(self, response: R | Deferred[R]) -> Result[R]:
        return Result(response, tuple(self.records), tuple(self.completions))
