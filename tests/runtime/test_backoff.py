from random import Random

from ottla.runtime.backoff import Backoff


def test_delays_double_up_to_the_longest_and_vary() -> None:
    backoff = Backoff(0.1, 1.0, Random(1))
    delays = [backoff.next_s() for _ in range(40)]
    for delay, longest in zip(delays, [0.1, 0.2, 0.4, 0.8] + [1.0] * 36, strict=True):
        assert longest / 2 <= delay <= longest
    assert len(set(delays)) == 40


def test_a_success_begins_anew() -> None:
    backoff = Backoff(0.1, 1.0, Random(1))
    for _ in range(5):
        backoff.next_s()
    backoff.reset()
    assert backoff.next_s() <= 0.1
