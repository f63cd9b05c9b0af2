import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.rates import Rate, TokenBucket, Windows

ELEVEN = Windows(11, 1000)


def test_a_rate_that_has_just_begun_counts_as_if_ten_windows_had_passed() -> None:
    rate = Rate(ELEVEN)
    rate.record(1000, 0)
    assert rate.per_second(0) == 100
    assert rate.excess_ms(100, 0) == 0
    assert rate.excess_ms(50, 0) == 10_000  # 1000 units at 50 a second take 20 s, 10 of them gone.


def test_the_excess_is_the_time_after_which_the_rate_is_within_its_bound() -> None:
    rate = Rate(ELEVEN)
    for second in range(8):
        rate.record(500, second * 1000)
    # Three windows are missing before the eight, of which the last has just begun.
    assert rate.per_second(7000) == 400
    wait_ms = rate.excess_ms(380, 7000)
    assert wait_ms == round((400 - 380) / 380 * 10_000)
    assert rate.excess_ms(380, 7000 + wait_ms) == 0


def test_what_is_older_than_all_windows_is_forgotten() -> None:
    rate = Rate(ELEVEN)
    rate.record(1000, 0)
    rate.record(10, 5000)
    assert rate.per_second(10_999) == pytest.approx(1010 / 10.999)
    assert rate.per_second(11_000) == pytest.approx(10 / (6 + 4))  # Of six seconds, four missing.
    assert not rate.is_idle(15_999)
    assert rate.is_idle(16_000)


def test_what_is_taken_back_does_not_count() -> None:
    rate = Rate(ELEVEN)
    rate.record(1000, 0)
    rate.record(-1000, 0)
    assert rate.per_second(0) == 0


@given(
    steps=st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 1)), min_size=1, max_size=60),
    bound=st.integers(1, 5000),
    windows=st.builds(Windows, st.integers(2, 11), st.sampled_from([1000, 2000])),
)
def test_who_waits_as_told_comes_to_no_more_than_the_bound(
    steps: list[tuple[int, float]], bound: int, windows: Windows
) -> None:
    """Beyond what all windows allow at once, in steps that each fit into one window."""
    rate = Rate(windows)
    now_ms = 0
    total = 0.0
    for pause_ms, filled in steps:
        value = filled * bound * windows.size_ms / 1000
        now_ms += pause_ms
        total += value
        rate.record(value, now_ms)
        now_ms += rate.excess_ms(bound, now_ms)
    burst = bound * windows.total_ms / 1000
    rounding = bound / 1000 * len(steps)
    assert total <= bound * now_ms / 1000 + burst + rounding


def test_a_step_that_is_larger_than_all_windows_is_forgotten_before_it_is_paid_for() -> None:
    """As in Kafka, whose samples do not outlive their windows."""
    rate = Rate(ELEVEN)
    rate.record(30_000, 0)
    wait_ms = rate.excess_ms(1000, 0)
    assert wait_ms == 20_000
    rate.record(30_000, wait_ms)
    assert rate.excess_ms(1000, wait_ms) == 20_000


def test_a_bucket_begins_full_and_may_go_below_zero_once() -> None:
    bucket = TokenBucket(ELEVEN)
    assert bucket.is_full(2, 1_000_000)
    bucket.take(30, 2, 1_000_000)  # Its capacity is 22.
    assert bucket.debt_ms(2, 1_000_000) == 4000
    assert bucket.debt_ms(2, 1_003_000) == 1000
    assert bucket.debt_ms(2, 1_004_000) == 0
    assert not bucket.is_full(2, 1_014_000)
    assert bucket.is_full(2, 1_015_000)
