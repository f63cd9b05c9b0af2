"""`ottla profile`, and how other commands and clients use profiles."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import EmbeddedBroker


class Shell:
    """Commands of a user with an empty home directory."""

    def __init__(self, config_home: Path) -> None:
        self.file = config_home / "ottla" / "profiles.json"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}
        self._environment = {**kept, "XDG_CONFIG_HOME": str(config_home)}

    def run(self, *words: str, code: int = 0, **variables: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", *words],
            env={**self._environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_names_for_clusters(shell: Shell) -> None:
    assert shell.run("profile", "list") == "PROFILE  BOOTSTRAP SERVER  CURRENT\n"
    secret = ("--set", "sasl.password=secret")
    assert "added profile staging" in shell.run("profile", "add", "staging", "-b", "one:1", *secret)
    shell.run("profile", "add", "production", "-b", "two:2")
    assert stat.S_IMODE(shell.file.stat().st_mode) == 0o600
    listed = shell.run("profile", "list")
    assert [line.split() for line in listed.splitlines()[1:]] == [
        ["production", "two:2"],
        ["staging", "one:1", "yes"],
    ]
    assert "secret" not in listed
    assert "using profile production" in shell.run("profile", "use", "production")
    assert "no broker at two:2" in shell.run("topics", "list", code=3)
    assert "no broker at one:1" in shell.run("topics", "list", code=3, OTTLA_PROFILE="staging")
    assert "no profile missing" in shell.run("profile", "use", "missing", code=1)
    assert "removed profile production" in shell.run("profile", "remove", "production")
    assert "no broker at localhost:9" in shell.run("topics", "list", "-b", "localhost:9", code=3)
    shell.file.write_text("{")
    assert "cannot read the profiles" in shell.run("profile", "list", code=1)


def test_commands_talk_to_the_profile_in_use(shell: Shell) -> None:
    with EmbeddedBroker() as broker:
        broker.topic("orders")
        shell.run("profile", "add", "here", "--bootstrap-server", broker.bootstrap_servers)
        assert "orders" in shell.run("topics", "list")


def test_a_login_is_taken_over_from_a_file_and_refused_if_others_can_read_it(
    shell: Shell, tmp_path: Path
) -> None:
    login = tmp_path / "anna.properties"
    login.touch(0o600)
    login.write_text(
        "bootstrap.servers=one:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        'sasl.jaas.config=PlainLoginModule required username="anna" password="lamp";\n'
        "ssl.truststore.location=ca.pem\n"
    )
    shell.run("profile", "add", "production", "--command-config", str(login))
    assert "one:1" in shell.run("profile", "list")
    stored = json.loads(shell.file.read_text())["profiles"]["production"]
    assert stored["sasl.username"] == "anna"
    assert stored["sasl.password"] == "lamp"
    assert stored["ssl.ca.location"] == str(tmp_path / "ca.pem")
    assert "--bootstrap-server is missing" in shell.run("profile", "add", "other", code=2)

    shell.file.chmod(0o644)
    for words in (("profile", "list"), ("topics", "list")):
        shown = shell.run(*words, code=1)
        assert "has a secret and others can read it" in shown
        assert "lamp" not in shown
