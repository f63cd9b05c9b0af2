"""A gateway's counters: plain numbers, turned into metrics on request.

Labels are bounded: declared routes, statuses, and a fixed vocabulary.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.gateway.core.publishing import Publisher


@dataclass(slots=True)
class Durations:
    """A histogram of durations, by powers of two of a nanosecond."""

    counts: list[int] = field(default_factory=lambda: [0] * 64)
    total_ns: int = 0

    def add(self, ns: int) -> None:
        self.counts[min(ns.bit_length(), 63)] += 1
        self.total_ns += ns


@dataclass(slots=True)
class RouteCounts:
    """Counters of one route and method."""

    in_flight: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    durations: Durations = field(default_factory=Durations)

    def begin(self) -> int:
        self.in_flight += 1
        return time.perf_counter_ns()

    def end(self, begun_ns: int, status: int) -> None:
        self.in_flight -= 1
        self.statuses[status] += 1
        self.durations.add(time.perf_counter_ns() - begun_ns)


@dataclass(slots=True)
class Counts:
    """Counters of a gateway, across all users."""

    routes: dict[tuple[str, str], RouteCounts] = field(default_factory=dict)  # By path and method.
    published: int = 0
    unpublished: int = 0  # Failed, or unknown whether written.
    received: int = 0
    settled: Counter[str] = field(default_factory=Counter)  # By verdict.
    webhook_calls: Counter[str] = field(default_factory=Counter)  # By outcome.
    websockets: int = 0  # Open.
    logins_refused: int = 0
    users: int = 0  # Logged in.
    publishers: list["Publisher"] = field(default_factory=list)  # Of all users.

    def route(self, path: str, method: str) -> RouteCounts:
        return self.routes.setdefault((path, method), RouteCounts())
