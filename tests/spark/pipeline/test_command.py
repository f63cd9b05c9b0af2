"""`ottla pipeline run` as a process: it runs until stopped, and resumes where it was."""

import json
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from tests.cli.command import start_ottla
from tests.spark.pipeline.conftest import Workshop

PIPELINE = """\
name: "{name}"
sources:
  lines: {topic: "{name}-lines", format: json, schema: n int}
steps:
  even: {sql: "select n from lines where n % 2 = 0"}
sinks:
  out: {from: even, topic: "{name}-out"}
"""
TIMEOUT_S = 400


@pytest.mark.timeout(1800)
def test_it_runs_until_it_is_stopped_and_goes_on_where_it_was(workshop: Workshop) -> None:
    workshop.topic("lines")
    workshop.topic("out")
    path = workshop.load(PIPELINE).path
    workshop.send("lines", [{"n": n} for n in range(4)])
    process = start_ottla(
        "pipeline", "run", path, "--master", "local[1]", "--metrics-port", "0",
        bootstrap=workshop.bootstrap,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        url = process.stderr.readline().decode().split()[-1]
        _wait_for(workshop, [{"n": 0}, {"n": 2}])
        workshop.send("lines", [{"n": n} for n in range(4, 7)])
        _wait_for(workshop, [{"n": 0}, {"n": 2}, {"n": 4}, {"n": 6}])
        own = f'{{pipeline="{workshop.name}",sink="out"}}'
        metrics = _wait_for_metric(url, f"ottla_pipeline_rows_in_total{own} 7")
        assert f"ottla_pipeline_running{own} 1" in metrics
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors
    assert output.decode() == f"out: 7 rows in, 4 rows out to topic {workshop.name}-out\n"
    assert f"{workshop.name}.out: batch 0 in " in errors.decode()
    workshop.send("lines", [{"n": 8}])
    assert _run_once(path, workshop.bootstrap) == {"rows_in": 1, "rows_out": 1}
    assert workshop.objects("out") == [{"n": n} for n in range(0, 9, 2)]


def _wait_for(workshop: Workshop, rows: list[dict[str, int]]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while workshop.objects("out") != rows:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _wait_for_metric(url: str, line: str) -> list[str]:
    """Returns the line's other fields; a batch is reported once Spark knows that it is done."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        with urllib.request.urlopen(url) as response:
            lines: list[str] = response.read().decode().splitlines()
        if line in lines:
            return lines
        assert time.monotonic() < deadline, lines
        time.sleep(0.1)


def _run_once(path: Path, bootstrap: str) -> dict[str, int]:
    process = start_ottla("pipeline", "run", path, "--once", "--json", bootstrap=bootstrap)
    output, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    (sink,) = json.loads(output)["sinks"]
    return {name: sink[name] for name in ("rows_in", "rows_out")}
