"""The files of `ottla secure init`; `tests/cluster/test_locks.py` starts a cluster from them."""

from pathlib import Path

import pytest
import yaml

from ottla.cli.secure.init import init
from ottla.network.endpoints import Endpoint, parse_endpoint


def listeners(directory: Path, host: str) -> list[Endpoint]:
    config = yaml.safe_load((directory / "nodes" / host / "broker.yaml").read_text())
    return [parse_endpoint(listener) for listener in config["listeners"].split(",")]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_a_node_with_a_loopback_address_listens_there_alone(tmp_path: Path, host: str) -> None:
    init(hosts=host, directory=tmp_path, port=9092)
    assert listeners(tmp_path, host.replace(":", "_")) == [
        Endpoint("SASL_SSL", host, 9092),
        Endpoint("NODES", host, 9093),
    ]


@pytest.mark.parametrize("host", ["one.example.com", "192.0.2.1", "2001:db8::1", "localhost"])
def test_any_other_node_listens_on_every_interface(tmp_path: Path, host: str) -> None:
    init(hosts=host, directory=tmp_path, port=9092)
    assert listeners(tmp_path, host.replace(":", "_")) == [
        Endpoint("SASL_SSL", "", 9092),
        Endpoint("NODES", "", 9093),
    ]
