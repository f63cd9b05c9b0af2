"""Tasks on a cluster that run a Python without Ottla: Spark ships it to them."""

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fork_server import REPOSITORY
from tests.pyspark_ottla.sink.written import values
from tests.spark import copied
from tests.spark.deployments import SETTINGS, Deployment

from ottla.client.wire.cluster import Cluster
from pyspark_ottla.bundle import PACKAGES, write_bundle


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("bundle") / "ottla.tar.gz"
    write_bundle(target)
    return target


@pytest.fixture(scope="module")
def unpacked(archive: Path) -> Path:
    directory = archive.parent / "unpacked"
    with tarfile.open(archive) as file:
        file.extractall(directory, filter="data")
    return directory


@pytest.fixture(scope="module")
def libraries(unpacked: Path) -> Path:
    """Ottla's dependencies, without Ottla."""
    directory = unpacked.parent / "libraries"
    directory.mkdir()
    for path in unpacked.iterdir():
        if path.name not in PACKAGES:
            (directory / path.name).symlink_to(path)
    return directory


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Without any package."""
    directory = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    python = str(directory / "bin" / "python")
    asked = [python, "-c", "import pyspark_ottla"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert "No module named 'pyspark_ottla'" in found.stderr
    return python


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", ["archive", "zip"])
def test_workers_get_ottla_from_spark(
    way: str,
    standalone: Deployment,
    bare_python: str,
    archive: Path,
    unpacked: Path,
    libraries: Path,
    cluster: Cluster,
    bootstrap: str,
    tmp_path: Path,
) -> None:
    if way == "archive":
        settings = {"spark.archives": f"{archive}#site", "spark.executorEnv.PYTHONPATH": "site"}
    else:
        write_bundle(tmp_path / "ottla.zip")
        settings = {
            "spark.submit.pyFiles": str(tmp_path / "ottla.zip"),
            "spark.executorEnv.PYTHONPATH": str(libraries),
        }
    on_driver = os.pathsep.join([str(unpacked), str(REPOSITORY)])
    deployment = replace(
        standalone,
        settings=SETTINGS | settings,
        variables={"PYSPARK_PYTHON": bare_python, "PYTHONPATH": on_driver},
    )
    source, target = copied.make_topics(cluster)
    arguments = (bootstrap, source, target, str(tmp_path))
    printed = deployment.run("tests.spark.programs.copy_topic", *arguments)
    assert json.loads(printed) == copied.PRINTED
    assert values(cluster, target) == copied.written()
