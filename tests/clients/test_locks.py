"""Real clients on secured listeners: TLS, certificates, SCRAM and PLAIN."""

import asyncio
import datetime as dt
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S
from tests.ports import HOST, ReservedPort

from ottla.cli.secure.authority import CLIENTS_UNIT, NODES_UNIT, issue, new_authority

pytestmark = pytest.mark.process

PASSWORD = "correct horse"
MECHANISMS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


class LockedBroker(NamedTuple):
    process: BrokerProcess
    directory: Path
    sasl_ssl: str
    mtls: str

    @property
    def authorities(self) -> str:
        return str(self.directory / "ca.pem")

    @property
    def certificate(self) -> str:
        return str(self.directory / "alice.pem")

    def admin(self) -> AdminClient:
        """Connects to the plaintext listener."""
        return AdminClient({"bootstrap.servers": self.process.bootstrap})


def write_identities(directory: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    authority = new_authority("tests", now)
    node = issue(authority, "node-1", NODES_UNIT, [HOST], now)
    alice = issue(authority, "alice", CLIENTS_UNIT, [], now)
    (directory / "ca.pem").write_bytes(authority.certificate)
    for name, identity in (("node", node), ("alice", alice)):
        path = directory / f"{name}.pem"
        path.touch(0o600)
        path.write_bytes(identity.keystore)


def set_password(admin: AdminClient, user: str, password: str) -> None:
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
        for mechanism in MECHANISMS
    ]
    for future in admin.alter_user_scram_credentials(changes).values():
        future.result(TIMEOUT_S)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockedBroker]:
    directory = tmp_path_factory.mktemp("locked")
    write_identities(directory)
    plain, sasl_ssl, mtls = ReservedPort(), ReservedPort(), ReservedPort()
    config = directory / "broker.yaml"
    config.write_text(
        f"ssl.keystore.location: {directory}/node.pem\n"
        f"ssl.truststore.location: {directory}/ca.pem\n"
        "listener.name.ssl.ssl.client.auth: required\n"
        "sasl.enabled.mechanisms: SCRAM-SHA-256,SCRAM-SHA-512,PLAIN\n"
    )
    listeners = (("PLAINTEXT", plain), ("SASL_SSL", sasl_ssl), ("SSL", mtls))
    arguments = [f"--listener={name}://{HOST}:{port}" for name, port in listeners]
    process = BrokerProcess(directory, "--config", str(config), *arguments, port=plain)
    with process:
        found = LockedBroker(
            process, directory, f"{HOST}:{sasl_ssl.number}", f"{HOST}:{mtls.number}"
        )
        set_password(found.admin(), "alice", PASSWORD)
        yield found


def librdkafka(locked: LockedBroker, lock: str, password: str = PASSWORD) -> dict[str, Any]:
    settings = {"ssl.ca.location": locked.authorities}
    if lock == "mTLS":
        return settings | {
            "bootstrap.servers": locked.mtls,
            "security.protocol": "SSL",
            "ssl.certificate.location": locked.certificate,
            "ssl.key.location": locked.certificate,
        }
    return settings | {
        "bootstrap.servers": locked.sasl_ssl,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": lock,
        "sasl.username": "alice",
        "sasl.password": password,
    }


def python_settings(locked: LockedBroker, lock: str, password: str = PASSWORD) -> dict[str, Any]:
    if lock == "mTLS":
        return {"bootstrap_servers": locked.mtls, "security_protocol": "SSL"}
    return {
        "bootstrap_servers": locked.sasl_ssl,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": lock,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


def with_confluent(locked: LockedBroker, lock: str, topic: str) -> bytes:
    settings = librdkafka(locked, lock)
    producer = Producer(settings)
    producer.produce(topic, b"x" * 100_000)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is None
        return bytes(message.value() or b"")
    finally:
        consumer.close()


def with_kafka_python(locked: LockedBroker, lock: str, topic: str) -> bytes:
    settings = python_settings(locked, lock) | {"ssl_cafile": locked.authorities}
    if lock == "mTLS":
        settings |= {"ssl_certfile": locked.certificate, "ssl_keyfile": locked.certificate}
    producer = KafkaProducer(**settings)
    producer.send(topic, b"x" * 100_000).get(TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(
        topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000
    )
    try:
        return bytes(next(consumer).value)
    finally:
        consumer.close()


def with_aiokafka(locked: LockedBroker, lock: str, topic: str) -> bytes:
    context = ssl.create_default_context(cafile=locked.authorities)
    if lock == "mTLS":
        context.load_cert_chain(locked.certificate)
    settings = python_settings(locked, lock) | {"ssl_context": context}

    async def main() -> bytes:
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"x" * 100_000)
        consumer = AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest")
        async with consumer:
            return bytes((await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value)

    return asyncio.run(main())


ROUND_TRIPS: Mapping[str, Callable[[LockedBroker, str, str], bytes]] = {
    "confluent": with_confluent,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


def alter_broker(admin: AdminClient, name: str, value: str | None) -> None:
    """None removes it."""
    operation = AlterConfigOpType.SET if value is not None else AlterConfigOpType.DELETE
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(TIMEOUT_S)


def described(admin: AdminClient, name: str) -> ConfigEntry | None:
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    (future,) = admin.describe_configs([resource]).values()
    found: dict[str, ConfigEntry] = future.result(TIMEOUT_S)
    return found.get(name)


def certificate(address: str) -> str:
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port)))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_keys_and_certificates_are_altered_while_the_broker_runs(
    locked: LockedBroker, tmp_path: Path
) -> None:
    write_identities(tmp_path)
    admin = locked.admin()
    old = certificate(locked.sasl_ssl)
    producer = Producer(librdkafka(locked, "SCRAM-SHA-512"))
    producer.list_topics(timeout=TIMEOUT_S)
    prefix = "listener.name.sasl_ssl."
    location, password = f"{prefix}ssl.keystore.location", f"{prefix}ssl.key.password"
    with pytest.raises(KafkaException, match="updated only per-listener"):
        alter_broker(admin, "ssl.keystore.location", str(tmp_path / "node.pem"))
    try:
        alter_broker(admin, password, "not needed")
        alter_broker(admin, location, str(tmp_path / "node.pem"))
        wait_for(lambda: certificate(locked.sasl_ssl) != old)
        new = certificate(locked.sasl_ssl)
        # Open connections stay, and other listeners keep their certificates.
        producer.produce("altered", b"still here")
        assert producer.flush(TIMEOUT_S) == 0
        assert certificate(locked.mtls) == old
        shown = described(admin, location)
        assert shown is not None
        assert shown.value == str(tmp_path / "node.pem")
        secret = described(admin, password)
        assert secret is not None
        assert secret.is_sensitive
        assert secret.value is None

        # An unusable file is reported and changes nothing.
        alter_broker(admin, location, str(tmp_path / "none.pem"))
        wait_for(lambda: f"cannot read {tmp_path}/none.pem" in locked.process.log_text())
        assert certificate(locked.sasl_ssl) == new
        assert "not needed" not in locked.process.log_text()
    finally:
        alter_broker(admin, location, None)
        alter_broker(admin, password, None)
    wait_for(lambda: certificate(locked.sasl_ssl) == old)


@pytest.mark.parametrize("lock", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "mTLS"])
@pytest.mark.parametrize("client", ROUND_TRIPS)
def test_a_client_writes_and_reads(locked: LockedBroker, client: str, lock: str) -> None:
    assert ROUND_TRIPS[client](locked, lock, f"{client}-{lock}") == b"x" * 100_000


def test_a_wrong_password_is_told_to_the_client(
    locked: LockedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[KafkaError] = []
    settings = librdkafka(locked, "SCRAM-SHA-512", "wrong")
    config: dict[str, Any] = {**settings, "error_cb": errors.append, "log_level": 0}
    admin = AdminClient(config)
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        admin.poll(0.1)
    context = ssl.create_default_context(cafile=locked.authorities)

    async def start() -> None:
        settings = python_settings(locked, "PLAIN", "wrong")
        producer = AIOKafkaProducer(**settings, ssl_context=context)
        try:
            await producer.start()
        finally:
            await producer.stop()

    with caplog.at_level("ERROR", "aiokafka"), pytest.raises(KafkaConnectionError):
        asyncio.run(start())
    assert "due to invalid credentials with SASL mechanism PLAIN" in caplog.text


def test_metadata_has_the_address_of_the_listener_that_was_asked(locked: LockedBroker) -> None:
    for lock, bootstrap in (("PLAIN", locked.sasl_ssl), ("mTLS", locked.mtls)):
        found = AdminClient(librdkafka(locked, lock)).list_topics(timeout=TIMEOUT_S)
        assert [f"{broker.host}:{broker.port}" for broker in found.brokers.values()] == [bootstrap]


def described_user(admin: AdminClient, user: str) -> Future[Any]:
    described = admin.describe_user_scram_credentials([user])
    assert isinstance(described, dict)
    return described[user]


def test_users_are_described_changed_and_removed(locked: LockedBroker) -> None:
    admin = locked.admin()
    set_password(admin, "carol", "one")
    described = described_user(admin, "carol").result(TIMEOUT_S)
    infos = described.scram_credential_infos
    assert [(info.mechanism, info.iterations) for info in infos] == [
        (mechanism, 4096) for mechanism in MECHANISMS
    ]
    of_everyone = admin.describe_user_scram_credentials()
    assert isinstance(of_everyone, Future)
    everyone = of_everyone.result(TIMEOUT_S)
    assert {"alice", "carol"} <= set(everyone)
    gone: list[UserScramCredentialAlteration] = [
        UserScramCredentialDeletion("carol", mechanism) for mechanism in MECHANISMS
    ]
    for future in admin.alter_user_scram_credentials(gone).values():
        future.result(TIMEOUT_S)
    with pytest.raises(KafkaException) as refused:
        described_user(admin, "carol").result(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_a_changed_password_counts_at_once(locked: LockedBroker) -> None:
    set_password(locked.admin(), "dave", "one")
    set_password(locked.admin(), "dave", "two")
    settings = librdkafka(locked, "SCRAM-SHA-256", "two") | {"sasl.username": "dave"}
    assert AdminClient(settings).list_topics(timeout=TIMEOUT_S).brokers


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_finds_the_certificate_trusted(locked: LockedBroker, version: str) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not there")
    command = [openssl, "s_client", "-connect", locked.sasl_ssl, version]
    command += ["-CAfile", locked.authorities, "-verify_return_error", "-verify_ip", HOST]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=TIMEOUT_S, check=False)
    assert b"Verify return code: 0 (ok)" in done.stdout, done.stderr


def test_openssl_is_refused_with_an_old_version(locked: LockedBroker) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not there")
    command = [openssl, "s_client", "-connect", locked.sasl_ssl, "-tls1_1", "-cipher"]
    command += ["ALL:@SECLEVEL=0"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode != 0
