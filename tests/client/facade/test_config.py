import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client import ClientConfig, ConsumerConfig
from ottla.client.profiles import ProfileError, profiles_path, save_profiles


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OTTLA_BOOTSTRAP_SERVER", "OTTLA_BOOTSTRAP_SERVERS", "OTTLA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_where_the_cluster_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def servers(config: ClientConfig) -> object:
        return config.settings()["bootstrap.servers"]

    assert servers(ClientConfig()) == "localhost:9092"
    save_profiles("staging", {"staging": {"bootstrap.servers": "staging:1"}, "old": {}})
    assert servers(ClientConfig()) == "staging:1"
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", "variable:1")
    assert servers(ClientConfig()) == "variable:1"
    assert servers(ClientConfig(bootstrap_servers=["a:1", "b:2"])) == "a:1,b:2"
    assert (
        servers(ClientConfig(bootstrap_servers="a:1", extra={"bootstrap.servers": "c:3"})) == "c:3"
    )


def test_profiles_are_for_their_owner_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    save_profiles("staging", {"staging": {"sasl.username": "anna", "sasl.password": "secret"}})
    assert stat.S_IMODE(profiles_path().stat().st_mode) == 0o600
    assert ClientConfig().settings()["sasl.password"] == "secret"
    monkeypatch.setenv("OTTLA_PROFILE", "missing")
    with pytest.raises(ProfileError, match="no profile 'missing'"):
        ClientConfig().settings()
    profiles_path().write_text("{")
    with pytest.raises(ProfileError, match="cannot read the profiles"):
        ClientConfig().settings()


def test_passwords_are_not_shown() -> None:
    assert "secret" not in repr(ConsumerConfig(sasl_password="secret"))


def test_import_is_cheap() -> None:
    program = "import sys, ottla.client; print({'confluent_kafka', 'kio'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
