"""Who hears that a produce waits."""

from ottla.replication.delayed_produce import DelayedProduces


class Waiting:
    deadline_ms = 10.0

    def expire(self) -> None:
        raise AssertionError


def test_the_sweep_is_told_once_when_a_produce_waits() -> None:
    produces = DelayedProduces()
    told: list[int] = []
    produces.notify(lambda: told.append(len(produces)))
    assert told == []
    produces.add(Waiting())
    produces.add(Waiting())
    assert told == [1]


def test_the_sweep_goes_on_while_a_produce_waits() -> None:
    produces = DelayedProduces()
    told: list[int] = []
    produces.add(Waiting())
    produces.notify(lambda: told.append(len(produces)))
    assert told == [1]
