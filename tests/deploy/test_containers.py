"""deploy/Dockerfile and deploy/docker-compose.yml, checked without a container engine.

`python -m tests.deploy.rolling_stops` builds the image and runs it.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ottla.network.config import ADVERTISED_LISTENERS, LISTENERS
from ottla.network.endpoints import parse_listeners
from ottla.node.config import METRICS_PORT, NODE_ID, load_config
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.config import ConfigValues

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
BROKERS = ("broker-1", "broker-2", "broker-3")


def image_environment() -> dict[str, str]:
    return dict(re.findall(r"(OTTLA_[A-Z_]+)=(\S+)", DOCKERFILE))


def values_of(service: str) -> ConfigValues:
    environment = {**image_environment(), **COMPOSE["services"][service]["environment"]}
    return ConfigValues(load_config(ServeSettings(), environment))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_broker_has_a_configuration_that_holds(number: int) -> None:
    service = COMPOSE["services"][f"broker-{number}"]
    values = values_of(f"broker-{number}")
    assert values[NODE_ID] == number
    assert values[METRICS_PORT] == 9464
    (published,) = service["ports"]
    address, outside, inside = published.split(":")
    assert address == "127.0.0.1"
    listeners, advertisements = values[LISTENERS], values[ADVERTISED_LISTENERS]
    by_name = {each.listener_name: each for each in parse_listeners(listeners)}
    advertised = {each.listener_name: each for each in parse_listeners(advertisements)}
    assert by_name["HOST"].port == int(inside)
    assert (advertised["HOST"].host, advertised["HOST"].port) == ("localhost", int(outside))
    assert (advertised["NODES"].host, advertised["NODES"].port) == (
        f"broker-{number}",
        by_name["NODES"].port,
    )


def test_the_image_alone_has_a_configuration_that_holds() -> None:
    load_config(ServeSettings(), image_environment())


def test_nothing_runs_with_more_rights_than_it_needs() -> None:
    assert re.findall(r"^USER (.*)", DOCKERFILE, re.MULTILINE)[-1] == "10001:10001"
    for name in (*BROKERS, "gateway"):
        service = COMPOSE["services"][name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_everything_that_is_mounted_is_there() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists(), source


def test_prometheus_scrapes_every_broker() -> None:
    config: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["job_name"] == "ottla"
    assert job["static_configs"][0]["targets"] == [f"{name}:9464" for name in BROKERS]


def test_docker_compose_takes_it() -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("there is no docker-compose here")
    subprocess.run(
        ["docker-compose", "-f", "docker-compose.yml", "config", "--quiet"], cwd=DEPLOY, check=True
    )


def test_promtool_takes_the_scrape_configuration(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool here; it comes with Debian's prometheus")
    shutil.copy(DEPLOY / "compose" / "prometheus.yml", tmp_path)
    shutil.copy(DEPLOY / "monitoring" / "prometheus" / "rules.yml", tmp_path)
    subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], check=True)
