"""What the failover demo counts."""

from ottla.cli.demo.ledger import Ledger


def written(*numbers: int) -> Ledger:
    ledger = Ledger(partitions=2)
    for second, number in enumerate(numbers):
        ledger.on_acknowledged(number, latency_ms=number + 1.0, now_s=float(second))
    return ledger


def read(ledger: Ledger, *numbers: int) -> Ledger:
    for number in numbers:
        ledger.on_read(number)
    return ledger


def test_what_was_read_once_and_in_order_is_fine() -> None:
    ledger = read(written(0, 1, 2, 3), 0, 2, 1, 3)
    assert (ledger.lost_count, ledger.duplicate_count, ledger.disorder_count) == (0, 0, 0)
    assert (ledger.lag, ledger.lost_so_far) == (0, 0)


def test_what_is_missing_is_lost_as_soon_as_something_behind_it_is_read() -> None:
    ledger = read(written(0, 2, 4, 6), 0, 6)
    assert (ledger.lost_so_far, ledger.lost_count, ledger.lag) == (2, 2, 2)


def test_what_nobody_acknowledged_is_not_lost() -> None:
    ledger = read(written(0, 4), 0, 4)
    assert (ledger.lost_so_far, ledger.lost_count) == (0, 0)


def test_what_is_not_read_yet_is_lag() -> None:
    ledger = read(written(0, 1, 2, 3), 0, 1)
    assert (ledger.lost_so_far, ledger.lag) == (0, 2)
    assert ledger.lost_count == 2  # If nothing more arrives.


def test_duplicates_and_disorder_are_told_apart() -> None:
    ledger = read(written(0, 2, 4), 0, 4, 2, 4)
    assert (ledger.duplicate_count, ledger.disorder_count, ledger.lost_count) == (1, 1, 0)
    assert ledger.lost_so_far == 0


def test_pauses_and_latencies_begin_with_the_clock() -> None:
    ledger = Ledger(partitions=2)
    ledger.on_acknowledged(0, latency_ms=900.0, now_s=-5.0)
    assert ledger.latency() is None
    for number, now_s in ((2, 0.0), (3, 0.5), (4, 3.0), (5, 1.0)):
        ledger.on_acknowledged(number, latency_ms=10.0 * number, now_s=now_s)
    latency = ledger.latency()
    assert latency is not None
    assert latency.longest == 50.0
    assert ledger.longest_pause_s == 3.0
    assert ledger.by_second == {0: 2, 1: 1, 3: 1}
    assert ledger.acknowledged_count == 5
