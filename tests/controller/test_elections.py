import pytest
from tests.controller.cluster import Cluster
from tests.controller.test_elect_leaders import led_by, moved_leaders

from ottla.controller import elections


def elect_once(cluster: Cluster) -> None:
    due = cluster.timers.pop_due(0)
    assert due is not None
    cluster.apply(due[1](0))


def test_leaders_return_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "ELECTIONS_PER_STEP", 2)
    cluster = moved_leaders(3)
    cluster.machine.on_loaded(0)
    assert cluster.timers.deadlines["elections"][0] == 0
    elect_once(cluster)
    assert led_by(cluster, 1) == [0, 1]
    assert cluster.timers.deadlines["elections"][0] == 0
    elect_once(cluster)
    assert led_by(cluster, 1) == [0, 1, 2]
    assert cluster.timers.deadlines["elections"][0] == 10_000


def test_leaders_stay_where_they_are_if_they_are_told_to() -> None:
    cluster = moved_leaders(auto_leader_rebalance_enable=False)
    cluster.machine.on_loaded(0)
    cluster.advance(1)
    assert led_by(cluster, 2) == [0]
