from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.conftest import Ottla
from tests.clients.authorization.brokers import OTTLA, add_users
from tests.clients.wire import Wire
from tests.ports import HOST, ReservedPort

pytestmark = pytest.mark.process


class Locked(NamedTuple):
    bootstrap: str
    login: str  # The file for --command-config.


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    directory: Path = tmp_path_factory.mktemp("tokens")
    port, nodes = ReservedPort(), ReservedPort()
    config, login = directory / "broker.yaml", directory / "alice.properties"
    text = OTTLA.format(port=port.number, nodes=nodes.number)
    config.write_text(text + "delegation.token.secret.key: very secret\n")
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.username=alice\nsasl.password=secret\n"
    )
    for path in (config, login):
        path.chmod(0o600)
    arguments = [
        f"--listener=SASL_PLAINTEXT://{HOST}:{port.number}",
        f"--listener=PLAINTEXT://{HOST}:{nodes.number}",
    ]
    with BrokerProcess(directory, "--config", str(config), *arguments, port=nodes) as process:
        with Wire(process.bootstrap) as anonymous:
            add_users(anonymous, ("alice",))
        yield Locked(f"{HOST}:{port.number}", str(login))


def test_a_token_is_created_listed_renewed_and_expired(ottla: Ottla, locked: Locked) -> None:
    def run(*words: str) -> tuple[str, Any]:
        done = ottla("tokens", *words, "--command-config", locked.login, bootstrap=locked.bootstrap)
        assert done.exit_code == 0, done.errors
        return done.output, done.json if "--json" in words else None

    created, _ = run("create", "--renewer", "bob", "--max-hours", "2")
    token = created.split()[1]
    assert f'username="{token}"' in created
    assert 'tokenauth="true";' in created
    text, (row,) = run("list", "--json")
    assert (row["token"], row["owner"], row["renewers"]) == (token, "alice", "bob")
    assert created.split('password="')[1].split('"')[0] not in text
    assert f"token {token} lives until " in run("renew", token, "--hours", "1")[0]
    assert f"token {token} expires at " in run("expire", token)[0]
    assert run("list", "--json")[1] == []


def test_who_has_not_logged_in_gets_no_token(ottla: Ottla, bootstrap: str) -> None:
    refused = ottla("tokens", "create", bootstrap=bootstrap)
    assert refused.exit_code != 0
    assert "tokens need a login" in refused.errors
