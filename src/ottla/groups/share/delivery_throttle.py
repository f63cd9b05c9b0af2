"""Delivers records that failed often fewer at a time, and on their last attempt one by one.

A record that makes its consumer fail takes along those delivered with it. So from half of the
allowed deliveries on, a range that was delivered together is halved with each further attempt, and
nothing else comes with it, as in Kafka.
"""

from typing import TYPE_CHECKING, Final

from ottla.groups.share.delivery import DeliveryState
from ottla.groups.share.offset_runs import Origin, Run, Runs

if TYPE_CHECKING:
    from ottla.groups.share.acquisition import DeliveryRules

ALL: Final = 1 << 62
_ATTEMPTS_MIN: Final = 2  # With this few, the last attempt is not special.


class DeliveryThrottle:
    """For one acquisition."""

    __slots__ = ("_count_max", "_origin", "_rules", "_runs")

    def __init__(self, runs: Runs, rules: "DeliveryRules") -> None:
        self._runs = runs
        self._rules = rules
        self._origin: Origin | None = None  # The throttled range.
        self._count_max: int | None = None  # How many of its records may be delivered.

    @property
    def is_on(self) -> bool:
        """Nothing else may be delivered besides what was taken."""
        return self._origin is not None

    def allowed(self, run: Run, count: int) -> int:
        """How many records of an available run may be taken, after `count` others."""
        if run.origin != self._origin:
            if self._origin is not None and count:
                return 0
            self._origin = self._count_max = None
            if run.origin is not None and self._is_due(run.origin):
                self._origin = run.origin
                if count:
                    return 0
        if self._origin is None:
            return ALL
        limit, attempts = self._rules.delivery_count_limit, run.delivery_count
        if attempts >= limit:
            return ALL  # It is given up instead.
        if limit > _ATTEMPTS_MIN and attempts == limit - 1:
            self._count_max = 1
        elif attempts >= self._rules.throttled_from and self._count_max is None:
            first, last = self._origin
            halvings = attempts - self._rules.throttled_from + 1
            self._count_max = max(1, (last - first + 1) >> halvings)
        return ALL if self._count_max is None else max(0, self._count_max - count)

    def _is_due(self, origin: Origin) -> bool:
        return any(
            self._rules.throttled_from <= run.delivery_count < self._rules.delivery_count_limit
            for run in self._runs.overlapping(*origin)
            if run.state is DeliveryState.AVAILABLE
        )
