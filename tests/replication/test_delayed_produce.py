"""Notifications of waiting produce requests."""

from ottla.replication.delayed_produce import DelayedProduces


class Waiting:
    deadline_ms = 10.0

    def expire(self) -> None:
        raise AssertionError


def test_the_sweep_is_told_once_when_a_produce_waits() -> None:
    produces = DelayedProduces()
    counts: list[int] = []
    produces.notify(lambda: counts.append(len(produces)))
    assert counts == []
    produces.add(Waiting())
    produces.add(Waiting())
    assert counts == [1]


def test_the_sweep_goes_on_while_a_produce_waits() -> None:
    produces = DelayedProduces()
    counts: list[int] = []
    produces.add(Waiting())
    produces.notify(lambda: counts.append(len(produces)))
    assert counts == [1]
