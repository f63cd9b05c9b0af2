from pathlib import Path

import pytest

from ottla.cli.main import run
from ottla.node.settings import LogFormat, ServeSettings


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServeSettings]:
    """The settings that the node was handed, instead of a node."""
    from ottla.node import serve as node_serve

    settings: list[ServeSettings] = []
    monkeypatch.setattr(node_serve, "serve", lambda given: settings.append(given) or 0)
    return settings


def test_nothing_given_leaves_everything_to_the_node(served: list[ServeSettings]) -> None:
    assert run(["serve"]) == 0
    assert served == [ServeSettings()]


def test_every_flag(served: list[ServeSettings], tmp_path: Path) -> None:
    config = tmp_path / "broker.yaml"
    config.touch()
    arguments = ["--id", "3", "--host", "0.0.0.0", "--port", "0", "--data", "/a", "--data", "/b"]
    arguments += ["--config", str(config), "--set", "num.partitions=3", "--set", "a=b=c"]
    arguments += ["--advertised", "example.com:9092", "--log-format", "json"]
    assert run(["serve", *arguments]) == 0
    assert served == [
        ServeSettings(
            id=3,
            host="0.0.0.0",
            port=0,
            data=(Path("/a"), Path("/b")),
            config_file=config,
            overrides={"num.partitions": "3", "a": "b=c"},
            advertised="example.com:9092",
            log_format=LogFormat.JSON,
        )
    ]


def test_listeners(served: list[ServeSettings]) -> None:
    names = ("PLAIN://localhost:9092", "OTHER://localhost:9093")
    assert run(["serve", "--listener", names[0], "--listener", names[1]]) == 0
    assert served[0].listeners == names
