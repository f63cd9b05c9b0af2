"""The blocks of docs/pipelines.md do what they show, and its pipelines are valid."""

import contextlib
import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.broker_process import BrokerProcess
from tests.cli.command import environment
from tests.client.topics import create_topic
from tests.docs.blocks import FENCE, matches, run, steps_of
from tests.fork_server import REPOSITORY

from ottla.client.wire.cluster import Cluster
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.validate import validate_pipeline
from pyspark_ottla.spark_api import VERSION

DOCUMENT = REPOSITORY / "docs" / "pipelines.md"
EXAMPLES = REPOSITORY / "examples"


@pytest.fixture(scope="module")
def own_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with BrokerProcess(tmp_path_factory.mktemp("documented")) as broker:
        yield broker.bootstrap


@pytest.mark.timeout(1800)
def test_the_blocks_do_what_they_show(
    spark: Any, own_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ottla = tmp_path / "ottla"
    ottla.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla "$@"\n')
    ottla.chmod(0o755)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    values = environment(own_bootstrap)
    values["PATH"] = f"{tmp_path}{os.pathsep}{values['PATH']}"
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for step in steps_of(DOCUMENT):
        if step.command[0] != sys.executable:
            run(step, tmp_path, values)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(step.command[-1], f"docs/pipelines.md:{step.line}", "exec"), {})
        if step.shown is not None:
            assert matches(step.shown, printed.getvalue()), printed.getvalue()


def test_the_pipelines_are_valid(spark: Any, own_bootstrap: str, tmp_path: Path) -> None:
    with Cluster(own_bootstrap) as cluster:
        for topic in {"orders", "clicks", "taps"} - cluster.topics().keys():
            create_topic(cluster, name=topic)
    shutil.copy(EXAMPLES / "pipelines" / "sessions.py", tmp_path)
    blocks = [block for block in _yaml_blocks() if block.startswith("name: ")]
    assert len(blocks) > 4
    if VERSION < (4, 1):  # It lacks transformWithState in Python.
        blocks = [block for block in blocks if "sessions:sessions" not in block]
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block)
        validate_pipeline(spark, load_pipeline(path, bootstrap_servers=own_bootstrap))


def _yaml_blocks() -> list[str]:
    return [block[2] for block in FENCE.finditer(DOCUMENT.read_text()) if block[1] == "yaml"]


def test_the_first_pipeline_is_the_example() -> None:
    shown = yaml.safe_load(_yaml_blocks()[0])
    example = yaml.safe_load((EXAMPLES / "pipelines" / "orders-per-minute.yaml").read_text())
    assert (shown["sources"], shown["steps"]) == (example["sources"], example["steps"])


def test_the_test_of_a_pipeline_is_one_of_the_example() -> None:
    (shown,) = (yaml.safe_load(block) for block in _yaml_blocks() if "given:" in block)
    example = (EXAMPLES / "pipelines" / "orders-per-minute.test.yaml").read_text()
    assert shown.items() <= yaml.safe_load(example).items()
