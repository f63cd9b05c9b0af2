from pathlib import Path

import pytest

from ottla.cli.main import run
from ottla.node.serve_settings import LogFormat, ServeSettings


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServeSettings]:
    """Captures the settings that a node would get."""
    from ottla.node import node_process

    settings: list[ServeSettings] = []

    def serve(given: ServeSettings, *_: object, **__: object) -> int:
        settings.append(given)
        return 0

    monkeypatch.setattr(node_process, "serve", serve)
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


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--http", "8080", "--no-http"], "say one of them"),
        (["--http", "x"], "HOST:PORT"),
        (["--http", "localhost:99999"], "HOST:PORT"),
        (["--http", "8080", "--shards", "2"], "ottla gateway"),
    ],
)
def test_http_that_cannot_be(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_http_without_what_it_takes_says_how_to_get_it(
    served: list[ServeSettings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("ottla.cli.gateway_beside.find_spec", lambda _: None)
    assert run(["serve"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["serve", "--http", "8080"]) == 1
    assert "pip install 'ottla[gateway]'" in capsys.readouterr().err
    assert len(served) == 1
