"""The log lines when dead letters cannot be written: few, however many letters."""

import logging
from collections.abc import Callable

import pytest

from ottla.coordination.dead_letter_reports import DeadLetterReports, Waiting
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition

Lines = Callable[[], list[str]]

MINUTE_MS = 60_000
ERROR = ApiError(ErrorCode.leader_not_available, "dlq.orders-0 has no leader")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records]


def waiting(partition: int, count: int = 10, *, blocks: bool = False) -> Waiting:
    return Waiting("g", TopicPartition("orders", partition), "dlq.orders", count, blocks)


def test_a_day_of_failures_of_many_partitions_takes_few_lines(lines: Lines) -> None:
    reports = DeadLetterReports()
    for second in range(0, 24 * 3_600, 30):
        for partition in range(100):
            reports.on_failed(partition, waiting(partition), ERROR, second * 1_000)

    assert len(lines()) == 1 + 6 + 22  # After 1, 2, 4 … 64 minutes, then every hour.
    assert (
        "(1000 wait, of orders-0, orders-1, orders-10, orders-11, orders-12 and 95 more)"
        in (lines()[-1])
    )


def test_the_end_is_told_when_the_last_partition_is_served(lines: Lines) -> None:
    reports = DeadLetterReports()
    reports.on_failed(0, waiting(0), ERROR, 0)
    reports.on_failed(1, waiting(1), ERROR, 0)

    reports.on_written(0, "g", "dlq.orders", MINUTE_MS)
    assert len(lines()) == 1
    reports.on_written(1, "g", "dlq.orders", 2 * MINUTE_MS)
    reports.on_written(1, "g", "dlq.orders", 3 * MINUTE_MS)

    assert lines()[1:] == ["share group g writes dead letters to dlq.orders again, after 120 s"]


def test_a_group_that_gets_nothing_more_is_told_once(lines: Lines) -> None:
    reports = DeadLetterReports()
    reports.on_failed(0, waiting(0), ERROR, 0)
    for _ in range(3):
        reports.on_failed(0, waiting(0, 12_000, blocks=True), ERROR, 1)

    assert len(lines()) == 2
    assert lines()[1].startswith(
        "share group g gets no more records of orders-0: 12000 dead letters for dlq.orders cannot"
        " be written: dlq.orders-0 has no leader."
    )


def test_a_partition_that_is_led_elsewhere_is_forgotten(lines: Lines) -> None:
    reports = DeadLetterReports()
    reports.on_failed(0, waiting(0), ERROR, 0)
    reports.forget(0)
    reports.on_written(0, "g", "dlq.orders", 1)

    assert len(lines()) == 1
