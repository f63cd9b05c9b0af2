"""Real clients that log in with tokens."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S
from tests.network.token_issuer import AUDIENCE, ISSUER, TokenIssuer, write_keys
from tests.ports import HOST, ReservedPort

pytestmark = pytest.mark.process

TOPIC = "tokens"


class Believing(NamedTuple):
    """A broker that trusts an issuer. (Without TLS, which tests allow.)"""

    address: str
    issuer: TokenIssuer


@pytest.fixture(scope="module")
def believing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Believing]:
    directory = tmp_path_factory.mktemp("tokens")
    issuer = TokenIssuer()
    plain, sasl = ReservedPort(), ReservedPort()
    (directory / "broker.yaml").write_text(
        "sasl.enabled.mechanisms: OAUTHBEARER\n"
        "sasl.plain.without.tls: true\n"
        f"sasl.oauthbearer.jwks.endpoint.url: {write_keys(directory / 'keys.json', issuer)}\n"
        f"sasl.oauthbearer.expected.issuer: {ISSUER}\n"
        f"sasl.oauthbearer.expected.audience: {AUDIENCE}\n"
    )
    listeners = (("PLAINTEXT", plain), ("SASL_PLAINTEXT", sasl))
    arguments = [f"--listener={name}://{HOST}:{port}" for name, port in listeners]
    config = ("--config", str(directory / "broker.yaml"))
    with BrokerProcess(directory, *config, *arguments, port=plain):
        yield Believing(f"{HOST}:{sasl.number}", issuer)


def produce_with_confluent(address: str, token: str) -> None:
    errors: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 600),
            "error_cb": errors.append,
        }
    )
    producer.produce(TOPIC, b"value")
    begun = time.monotonic()
    while producer.flush(0.1) and not any(
        error.code() == KafkaError._AUTHENTICATION for error in errors
    ):
        assert time.monotonic() - begun < TIMEOUT_S
    if len(producer):
        producer.purge()
        raise PermissionError


class _Provider(KafkaPythonTokens):  # type: ignore[misc]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def produce_with_kafka_python(address: str, token: str) -> None:
    try:
        producer = KafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=_Provider(token),
            max_block_ms=20_000,
        )
        producer.send(TOPIC, b"value").get(TIMEOUT_S)
        producer.close()
    except KafkaPythonError as error:
        raise PermissionError from error


class _AsyncProvider(AiokafkaTokens):  # type: ignore[misc]  # aiokafka has no types.
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def produce_with_aiokafka(address: str, token: str) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=_AsyncProvider(token),
        )
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"value")
        except AiokafkaError as error:
            raise PermissionError from error
        finally:
            await producer.stop()

    asyncio.run(main())


PRODUCERS = [produce_with_confluent, produce_with_kafka_python, produce_with_aiokafka]


@pytest.mark.parametrize("produce", PRODUCERS)
def test_a_client_with_a_good_token_is_let_in(believing: Believing, produce: Any) -> None:
    produce(believing.address, believing.issuer.token("ann"))


# kafka-python ignores the answer, and waits.
@pytest.mark.parametrize("produce", [produce_with_confluent, produce_with_aiokafka])
def test_a_client_with_an_old_token_is_not(believing: Believing, produce: Any) -> None:
    with pytest.raises(PermissionError):
        produce(believing.address, believing.issuer.token("ann", valid_s=-3600))
