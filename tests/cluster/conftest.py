from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.processes import ClusterProcesses

StartCluster = Callable[..., ClusterProcesses]


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    """Starts clusters that stop with the test; if it fails, their logs are shown."""
    clusters: list[ClusterProcesses] = []

    def start(count: int = 3, *arguments: str) -> ClusterProcesses:
        directory = tmp_path / f"cluster-{len(clusters)}"
        directory.mkdir()
        cluster = ClusterProcesses(directory, count, *arguments)
        clusters.append(cluster)
        return cluster.__enter__()

    yield start
    for cluster in clusters:
        cluster.stop()
        print(cluster.log_text())
