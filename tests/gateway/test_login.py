"""A gateway for a secured cluster: it logs in, and so do its users."""

import asyncio
import base64
import datetime as dt
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin import ScramMechanism as Mechanism
from starlette.requests import Request
from tests.broker_process import BrokerProcess
from tests.gateway.gateway_process import PATIENT, GatewayProcess
from tests.gateway.test_beside import wait_until_ready
from tests.ports import HOST, ReservedPort

from ottla.cli.command_config import read_command_config
from ottla.cli.secure.authority import CLIENTS_UNIT, NODES_UNIT, issue, new_authority
from ottla.gateway.api.parameters import HEADERS
from ottla.gateway.core.errors import TooBusy
from ottla.gateway.identity import Users
from ottla.gateway.services import Services
from ottla.gateway.settings import GatewaySettings

pytestmark = pytest.mark.process

PASSWORDS = {"gateway": "of the gateway", "alice": "correct horse: battery"}


class Locked(NamedTuple):
    directory: Path
    plain: str
    sasl_ssl: str
    mtls: str


def set_passwords(bootstrap: str, passwords: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    info = ScramCredentialInfo(Mechanism.SCRAM_SHA_512, 4096)
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, info, password.encode())
        for user, password in passwords.items()
    ]
    for future in admin.alter_user_scram_credentials(changes).values():
        future.result(120)


def properties(directory: Path, name: str, **values: str) -> Path:
    path = directory / f"{name}.properties"
    path.touch(0o600)
    lines = [f"{key.replace('_', '.')}={value}" for key, value in values.items()]
    path.write_text("\n".join(["ssl.truststore.location=ca.pem", *lines]))
    return path


def write_identities(directory: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    authority = new_authority("tests", now)
    (directory / "ca.pem").write_bytes(authority.certificate)
    for name, unit in (("node", NODES_UNIT), ("alice", CLIENTS_UNIT)):
        path = directory / f"{name}.pem"
        path.touch(0o600)
        path.write_bytes(issue(authority, name, unit, [HOST], now).keystore)


def broker_arguments(directory: Path, *listeners: str) -> list[str]:
    settings = {
        "ssl.keystore.location": directory / "node.pem",
        "ssl.truststore.location": directory / "ca.pem",
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    named = [f"--listener={listener}" for listener in listeners]
    return [*named, *(f"--set={key}={value}" for key, value in settings.items())]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    directory = tmp_path_factory.mktemp("locked")
    write_identities(directory)
    plain, sasl_ssl, mtls = ReservedPort(), ReservedPort(), ReservedPort()
    found = Locked(directory, f"{HOST}:{plain}", f"{HOST}:{sasl_ssl}", f"{HOST}:{mtls}")
    arguments = broker_arguments(
        directory,
        f"PLAINTEXT://{found.plain}",
        f"SASL_SSL://{found.sasl_ssl}",
        f"SSL://{found.mtls}",
    )
    with BrokerProcess(directory, *arguments, port=plain):
        set_passwords(found.plain, PASSWORDS)
        yield found


@pytest.fixture(scope="module")
def login(locked: Locked) -> Path:
    return properties(
        locked.directory,
        "gateway",
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="gateway",
        sasl_password=PASSWORDS["gateway"],
    )


@pytest.fixture(scope="module")
def basic(locked: Locked, login: Path) -> Iterator[GatewayProcess]:
    """With HTTPS, its own login, and HTTP Basic users."""
    process = GatewayProcess(
        locked.directory,
        locked.sasl_ssl,
        *("--command-config", str(login), "--auth", "basic"),
        *("--tls-certificate", str(locked.directory / "node.pem")),
        authorities=locked.directory / "ca.pem",
    )
    with process:
        yield process


@pytest.fixture
def https(basic: GatewayProcess) -> Iterator[httpx.Client]:
    assert basic.tls is not None
    with httpx.Client(base_url=basic.url, timeout=PATIENT, verify=basic.tls) as client:
        yield client
    assert "Traceback" not in basic.log_text(), basic.log_text()


def test_a_gateway_logs_in_with_a_password(locked: Locked, login: Path, tmp_path: Path) -> None:
    arguments = ("--command-config", str(login))
    with (
        GatewayProcess(tmp_path, locked.sasl_ssl, *arguments) as gateway,
        httpx.Client(base_url=gateway.url, timeout=PATIENT) as http,
    ):
        published = http.post("/publish", json={"topic": "scram", "message": "x"})
        assert published.json()["offset"] == 0
        assert http.post("/consume", json={"topic": "scram", "wait": 60}).status_code == 200
        instance = http.post("/consumers/g", json={"name": "i"})
        assert instance.status_code == 200, instance.text


def test_a_gateway_logs_in_with_a_certificate(locked: Locked, tmp_path: Path) -> None:
    login = properties(
        locked.directory, "mtls", security_protocol="SSL", ssl_keystore_location="alice.pem"
    )
    arguments = ("--command-config", str(login))
    with GatewayProcess(tmp_path, locked.mtls, *arguments) as gateway:
        body = {"topic": "mtls", "message": "x"}
        assert httpx.post(f"{gateway.url}/publish", json=body, timeout=PATIENT).status_code == 200


def test_a_wrong_password_of_the_gateway_is_told(locked: Locked, tmp_path: Path) -> None:
    login = properties(
        tmp_path,
        "wrong",
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="gateway",
        sasl_password="wrong",
        ssl_truststore_location=str(locked.directory / "ca.pem"),
    )
    with GatewayProcess(tmp_path, locked.sasl_ssl, "--command-config", str(login)) as gateway:
        answer = httpx.get(f"{gateway.url}/topics", timeout=PATIENT)
        assert (answer.status_code, answer.json()["hint"]) == (
            502,
            "Correct the gateway's credentials.",
        )


def test_who_names_nobody_is_refused(https: httpx.Client) -> None:
    for auth in (None, ("alice", "wrong"), ("nobody", "x"), ("gateway", PASSWORDS["alice"])):
        answer = https.get("/topics", auth=auth)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert answer.headers["content-type"] == "application/problem+json"
    assert https.get("/health").status_code == 200
    assert https.get("/ready").status_code == 200


def test_users_of_the_brokers_are_let_in(https: httpx.Client) -> None:
    alice = ("alice", PASSWORDS["alice"])
    published = https.post("/publish", json={"topic": "basic", "message": "x"}, auth=alice)
    assert published.json()["offset"] == 0
    received = https.post("/consume", json={"topic": "basic", "wait": 60}, auth=alice)
    # A handle is valid for anyone who may acknowledge it.
    own = ("gateway", PASSWORDS["gateway"])
    done = https.post("/ack", json={"delivery": received.json()["delivery"]}, auth=own)
    assert done.status_code == 204
    assert https.get("/subscriptions", auth=alice).status_code == 403
    assert https.get("/subscriptions", auth=own).status_code == 200


def test_a_new_password_is_good_at_once(https: httpx.Client, locked: Locked) -> None:
    set_passwords(locked.plain, {"carol": "old"})
    assert https.get("/topics", auth=("carol", "old")).status_code == 200
    set_passwords(locked.plain, {"carol": "new"})
    assert https.get("/topics", auth=("carol", "new")).status_code == 200


@pytest.fixture
def collected() -> Iterator[None]:
    """Connections may still be in their TLS shutdown when the loop ends.

    They are collected here, so that they do not fail a later test.
    """
    yield
    gc.collect()


@pytest.mark.usefixtures("collected")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_idle_users_make_room_for_others(locked: Locked, login: Path) -> None:
    settings = GatewaySettings(locked.sasl_ssl, login=read_command_config(login))

    def asked_by(user: str) -> Request:
        credentials = base64.b64encode(f"{user}:{PASSWORDS[user]}".encode())
        return Request({"type": "http", HEADERS: {b"authorization": b"Basic " + credentials}})

    async def run() -> None:
        own = Services(settings, settings.access())
        users = Users(own, settings.access(), users_max=1)
        async with users.enter(asked_by("alice")) as first:
            with pytest.raises(TooBusy):
                await users.enter(asked_by("gateway")).__aenter__()
        async with users.enter(asked_by("alice")) as again:
            assert again is first
        async with users.enter(asked_by("gateway")) as other:
            assert other is not first
            assert len(users) == 1
        own.stopping.set()
        await users.close()
        await own.close()

    asyncio.run(run())


def test_a_gateway_beside_a_locked_node_logs_in(
    locked: Locked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = properties(
        locked.directory, "beside", security_protocol="SSL", ssl_keystore_location="alice.pem"
    )
    monkeypatch.setenv("OTTLA_COMMAND_CONFIG", str(login))
    plain, mtls, http = ReservedPort(), ReservedPort(), ReservedPort()
    arguments = broker_arguments(
        locked.directory, f"SSL://{HOST}:{mtls}", f"PLAINTEXT://{HOST}:{plain}"
    )
    with BrokerProcess(tmp_path, *arguments, "--http", str(http), port=plain):
        url = f"http://{HOST}:{http}"
        wait_until_ready(url)
        body = {"topic": "beside", "message": "x"}
        assert httpx.post(f"{url}/publish", json=body, timeout=PATIENT).json()["offset"] == 0
