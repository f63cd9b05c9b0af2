import math

import pytest
from benchmarks.results import (
    Better,
    Requirement,
    Results,
    Row,
    Verdict,
    advantage,
    percentile,
    summarize,
)

SPEED = Row("produce", "1 KB", "MB/s", Better.HIGHER, Requirement(ratio_min=1.5))
START = Row("start", "first record", "s", Better.LOWER, Requirement(ratio_min=8.0, value_max=0.5))


def results(row: Row, **samples: list[float]) -> Results:
    taken = Results()
    for peer, values in samples.items():
        for value in values:
            taken.record(row, peer, value)
    return taken


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (0.999, 100.0), (1.0, 100.0)]
)
def test_a_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    assert percentile([float(value) for value in range(1, 101)], share) == expected


def test_a_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 0.999) == 7.0


def test_a_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_a_summary_has_the_median_and_the_spread() -> None:
    assert summarize([3.0, 1.0, 10.0, 2.0]) == (2.5, 1.0, 10.0, 4)


def test_an_advantage_above_one_means_ours_is_better_in_either_direction() -> None:
    assert advantage(Better.HIGHER, 200.0, 100.0) == 2.0
    assert advantage(Better.LOWER, 0.5, 2.0) == 4.0
    assert advantage(Better.LOWER, 0.0, 2.0) == math.inf


def test_a_ratio_is_the_median_of_the_ratios_of_each_round() -> None:
    taken = results(SPEED, ottla=[100.0, 400.0, 90.0], kafka=[50.0, 100.0, 90.0])
    assert taken.ratio(SPEED) == (2.0, 1.0, 4.0, 3)


def test_a_ratio_without_the_reference_is_unknown() -> None:
    taken = results(SPEED, ottla=[100.0])
    assert taken.ratio(SPEED) is None
    assert taken.verdict(SPEED) is Verdict.NOT_MEASURED


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [(0.25, 2.0, Verdict.MET), (0.3, 2.0, Verdict.MISSED), (0.6, 6.0, Verdict.MISSED)],
)
def test_a_verdict_asks_for_the_ratio_and_for_the_value(
    ours: float, theirs: float, verdict: Verdict
) -> None:
    assert results(START, ottla=[ours], kafka=[theirs]).verdict(START) is verdict


def test_nothing_asked_is_neither_met_nor_missed() -> None:
    row = Row("consume", "1 KB", "MB/s", Better.HIGHER)
    assert results(row, ottla=[1.0], kafka=[2.0]).verdict(row) is Verdict.NOT_ASKED


def test_peers_are_listed_with_ottla_first_and_kafka_second() -> None:
    assert results(SPEED, another=[1.0], kafka=[1.0], ottla=[1.0]).peers("produce") == [
        "ottla",
        "kafka",
        "another",
    ]


def test_a_value_that_must_be_reached() -> None:
    row = Row("queue", "receive", "messages/s", Better.HIGHER, Requirement(value_min=100.0))
    assert results(row, ottla=[90.0, 100.0, 120.0]).verdict(row) is Verdict.MET
    assert results(row, ottla=[90.0, 99.0, 120.0]).verdict(row) is Verdict.MISSED


def test_a_ratio_to_another_reference() -> None:
    asked = Requirement(ratio_min=2.0, reference="elasticmq")
    row = Row("SQS", "cycle", "messages/s", Better.HIGHER, asked)
    assert results(row, ottla=[200.0], kafka=[1.0], elasticmq=[100.0]).verdict(row) is Verdict.MET
    assert results(row, ottla=[200.0], elasticmq=[101.0]).verdict(row) is Verdict.MISSED
    assert results(row, ottla=[200.0], kafka=[1.0]).verdict(row) is Verdict.NOT_MEASURED
