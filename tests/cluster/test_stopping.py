"""A whole cluster is stopped at once, while clients write."""

import pytest
from tests.cluster.conftest import StartCluster
from tests.cluster.faults.stops import run_stops

pytestmark = pytest.mark.process

# Long enough that no node gives up only because the machine is slow.
PATIENT_STOP = ("--set", "controlled.shutdown.timeout.ms=100000")


def test_all_nodes_stop_at_once_and_none_gives_up(start_cluster: StartCluster) -> None:
    outcome = run_stops(start_cluster(3, *PATIENT_STOP), rounds=1)
    assert outcome.codes == [0, 0, 0]
    assert outcome.given_up == []
    assert outcome.problems == []
    assert outcome.seconds[0] < 120  # The budget, and time to close the logs.
