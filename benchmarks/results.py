"""The arithmetic of a run: samples, medians, spreads, ratios and verdicts.

Samples of one row are kept per peer in the order of rounds. A ratio compares two samples of the
same round, because the machine's speed drifts; the ratio that is shown is the median of those.
A ratio above 1 always means that Ottla is better, whichever direction the row's unit has.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

SUBJECT = "ottla"
REFERENCE = "kafka"


class Better(Enum):
    HIGHER = "higher"
    LOWER = "lower"


class Requirement(NamedTuple):
    """What a row must show. None: no requirement."""

    ratio_min: float | None = None  # To the reference, in the same round.
    value_max: float | None = None  # The subject's own value, in the row's unit.
    value_min: float | None = None  # Also in the row's unit.
    reference: str = REFERENCE


class Row(NamedTuple):
    """One line of the result table."""

    scenario: str
    label: str
    unit: str
    better: Better
    requirement: Requirement = Requirement()


class Summary(NamedTuple):
    median: float
    low: float
    high: float
    rounds: int


class Verdict(Enum):
    MET = "met"
    MISSED = "missed"
    NOT_MEASURED = "not measured"
    NOT_ASKED = ""


@dataclass
class Results:
    """Samples by row and peer."""

    samples: dict[Row, dict[str, list[float]]] = field(default_factory=dict)

    def record(self, row: Row, peer: str, value: float) -> None:
        self.samples.setdefault(row, {}).setdefault(peer, []).append(value)

    def peers(self, scenario: str) -> list[str]:
        """The peers with a sample of the row, Ottla first."""
        seen = {peer for row in self.rows(scenario) for peer in self.samples[row]}
        return sorted(seen, key=lambda peer: (peer != SUBJECT, peer != REFERENCE, peer))

    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(row.scenario for row in self.samples))

    def rows(self, scenario: str) -> list[Row]:
        return [row for row in self.samples if row.scenario == scenario]

    def summary(self, row: Row, peer: str) -> Summary | None:
        values = self.samples[row].get(peer)
        return summarize(values) if values else None

    def ratio(self, row: Row, reference: str | None = None) -> Summary | None:
        """How many times better the subject is than the reference, by default the row's."""
        by_peer = self.samples[row]
        theirs = by_peer.get(reference or row.requirement.reference, ())
        pairs = zip(by_peer.get(SUBJECT, ()), theirs, strict=False)
        ratios = [advantage(row.better, ours, other) for ours, other in pairs]
        return summarize(ratios) if ratios else None

    def verdict(self, row: Row) -> Verdict:
        ratio_min, value_max, value_min, _ = row.requirement
        if ratio_min is None and value_max is None and value_min is None:
            return Verdict.NOT_ASKED
        ratio, ours = self.ratio(row), self.summary(row, SUBJECT)
        if ours is None or (ratio_min is not None and ratio is None):
            return Verdict.NOT_MEASURED
        is_met = (
            (ratio_min is None or ratio is None or ratio.median >= ratio_min)
            and (value_max is None or ours.median <= value_max)
            and (value_min is None or ours.median >= value_min)
        )
        return Verdict.MET if is_met else Verdict.MISSED


def advantage(better: Better, ours: float, theirs: float) -> float:
    """The ratio of two samples, above 1 when ours is the better one."""
    dividend, divisor = (ours, theirs) if better is Better.HIGHER else (theirs, ours)
    return dividend / divisor if divisor else math.inf


def summarize(values: Sequence[float]) -> Summary:
    return Summary(statistics.median(values), min(values), max(values), len(values))


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of values in ascending order; `share` is between 0 and 1."""
    if not ordered:
        raise ValueError("no values")
    rank = math.ceil(share * len(ordered))
    return ordered[max(rank, 1) - 1]
