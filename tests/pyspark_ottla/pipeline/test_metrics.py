import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from tests.pyspark_ottla.pipeline.reports import report

from pyspark_ottla.pipeline.metrics import MetricsServer
from pyspark_ottla.pipeline.progress import Progress


@pytest.fixture
def progress() -> Progress:
    made = Progress("shop")
    made.add("out", "topic out")
    made.take("out", report())
    return made


@pytest.fixture
def server(progress: Progress) -> Iterator[MetricsServer]:
    server = MetricsServer("127.0.0.1", 0, progress)
    yield server
    server.close()


def get(server: MetricsServer, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(response.read().decode())


def test_prometheus_reads_what_the_queries_do(server: MetricsServer, progress: Progress) -> None:
    lines = get(server, "/metrics").splitlines()
    own = '{pipeline="shop",sink="out"}'
    for line in (
        f"ottla_pipeline_rows_in_total{own} 100",
        f"ottla_pipeline_rows_out_total{own} 30",
        f"ottla_pipeline_rows_in_per_second{own} 200",
        f"ottla_pipeline_lag_records{own} 20",
        f"ottla_pipeline_batch_duration_seconds{own} 0.5",
        f"ottla_pipeline_batch_seconds_total{own} 0.5",
        f"ottla_pipeline_restarts_total{own} 0",
        f"ottla_pipeline_state_rows{own} 7",
        f"ottla_pipeline_running{own} 1",
        f"ottla_pipeline_failed{own} 0",
        'ottla_pipeline_rows_refused_total{pipeline="shop",sink="out",dataset="orders",'
        'expectation="positive"} 4',
        "# TYPE ottla_pipeline_rows_in_total counter",
    ):
        assert line in lines
    progress.fail("out", "gone")
    assert f"ottla_pipeline_failed{own} 1" in get(server, "/metrics")


def test_large_numbers_are_whole(server: MetricsServer, progress: Progress) -> None:
    progress.queries["out"].rows_in = 123_456_789
    assert "ottla_pipeline_rows_in_total" in get(server, "/metrics")
    assert " 123456789\n" in get(server, "/metrics")


def test_there_is_nothing_else(server: MetricsServer) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(server, "/")
