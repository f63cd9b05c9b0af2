import time

import pytest
from tests.cli.conftest import Ottla

from ottla.cli.probe import Tally
from ottla.testing import EmbeddedCluster

pytestmark = pytest.mark.process

PATIENCE_S = 300.0


def test_records_come_back(ottla: Ottla, bootstrap: str) -> None:
    words = ("--count", "2", "--interval-ms", "1", "--late-ms", "60000", "--timeout-ms", "60000")
    passed = ottla("probe", *words, "--json", bootstrap=bootstrap)
    assert (passed.exit_code, passed.errors) == (0, "")
    assert passed.json["passed"] is True
    (broker,) = passed.json["brokers"]
    assert (broker["sent"], broker["lost"], broker["late"]) == (2, 0, 0)
    assert 0 < broker["median_ms"] <= broker["max_ms"]
    table = ottla("probe", *words, bootstrap=bootstrap)
    assert table.output.splitlines()[0].split()[:4] == ["BROKER", "SENT", "LOST", "LATE"]


def test_late_records_fail_it(ottla: Ottla, bootstrap: str) -> None:
    words = ("--count", "1", "--late-ms", "0", "--timeout-ms", "60000")
    failed = ottla("probe", *words, "--json", bootstrap=bootstrap)
    assert failed.exit_code == 1
    assert failed.json["brokers"][0]["late"] == 1


def test_a_broker_that_is_down_fails_it(ottla: Ottla) -> None:
    words = ("--count", "1", "--late-ms", "60000", "--timeout-ms", "60000", "--json")
    with EmbeddedCluster(3) as cluster:
        servers = cluster.bootstrap_servers
        whole = ottla("probe", *words, bootstrap=servers)
        assert whole.exit_code == 0, whole.output + whole.errors
        cluster.kill_node(3)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            outcome = ottla("probe", *words, bootstrap=servers)
            brokers = outcome.json["brokers"] if outcome.output else []
            if [each for each in brokers if each["problem"] == "down or cut off"]:
                break
            assert time.monotonic() < deadline, outcome
    assert outcome.exit_code == 1
    assert [each["broker"] for each in brokers] == [1, 2, 3]
    assert brokers[2]["sent"] == 0


def test_wrong_numbers(ottla: Ottla, bootstrap: str) -> None:
    failed = ottla("probe", "--count", "-1", bootstrap=bootstrap)
    assert (failed.exit_code, failed.errors) == (2, "ottla: --count -1 is less than 0\n")


def test_what_a_tally_tells() -> None:
    tally = Tally(3, sent=3)
    tally.on_back(10.04, late_ms=20)
    tally.on_back(30, late_ms=20)
    tally.lose("its partition has no leader")
    assert tally.row() == {
        "broker": 3,
        "sent": 3,
        "lost": 1,
        "late": 1,
        "median_ms": 20.0,
        "max_ms": 30,
        "problem": "its partition has no leader",
    }
