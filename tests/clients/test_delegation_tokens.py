"""Delegation tokens on a real broker: created by a user, used to log in by anyone who has one."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from kio.static.primitive import i64Timedelta
from tests.broker_process import BrokerProcess
from tests.clients.authorization.brokers import OTTLA, AuthorizingBroker, add_users
from tests.clients.authorization.entities import codes, request
from tests.clients.wire import Wire
from tests.ports import HOST, ReservedPort

from ottla.security.scram import SCRAM_MECHANISMS
from ottla.security.scram_client import ScramClient

pytestmark = pytest.mark.process

AT_ONCE = i64Timedelta.parse(timedelta(milliseconds=-1))
USERS = ("admin", "alice", "bob", "eve")
# Bob may describe every token, Eve those of Alice, and Alice may create one topic.
ACLS = [
    {"resource_type": 6, "resource_name": "*", "principal": "User:bob", "operation": 8},
    {"resource_type": 7, "resource_name": "User:alice", "principal": "User:eve", "operation": 14},
    {"resource_type": 2, "resource_name": "hers", "principal": "User:alice", "operation": 5},
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizingBroker]:
    directory: Path = tmp_path_factory.mktemp("tokens")
    port, nodes = ReservedPort(), ReservedPort()
    config = directory / "broker.yaml"
    text = OTTLA.format(port=port.number, nodes=nodes.number)
    text = text.replace("mechanisms: PLAIN", "mechanisms: PLAIN,SCRAM-SHA-256,SCRAM-SHA-512")
    config.write_text(text + "delegation.token.secret.key: very secret\n")
    config.chmod(0o600)
    arguments = [
        f"--listener=SASL_PLAINTEXT://{HOST}:{port.number}",
        f"--listener=PLAINTEXT://{HOST}:{nodes.number}",
    ]
    with BrokerProcess(directory, "--config", str(config), *arguments, port=nodes) as process:
        with Wire(process.bootstrap) as anonymous:
            add_users(anonymous, USERS)
            creations = [{"host": "*", "permission_type": 3, **acl} for acl in ACLS]
            assert codes(anonymous.call(request(30, 3, creations=creations))) == {"none"}
            refused = anonymous.call(request(38, 3))
            assert codes(refused) == {"delegation_token_request_not_allowed"}
        yield AuthorizingBroker(f"{HOST}:{port.number}")
        assert "very secret" not in process.log_text()


def log_in(bootstrap: str, token_id: str, hmac: bytes, mechanism: str) -> tuple[Wire, str]:
    """A connection, and the result of its login."""
    wire = Wire(bootstrap)
    wire.call(request(17, 1, mechanism=mechanism))
    password = b64encode(hmac).decode()
    client = ScramClient(SCRAM_MECHANISMS[mechanism], token_id, password, "nonce", by_token=True)
    first = wire.call(request(36, 2, auth_bytes=client.first()))
    final = wire.call(request(36, 2, auth_bytes=client.final(bytes(first.auth_bytes))))
    (code,) = codes(final)
    if code == "none":
        client.verify(bytes(final.auth_bytes))
    return wire, code


def shown(wire: Wire) -> list[str]:
    response = wire.call(request(41, 3, owners=None))
    assert codes(response) == {"none"}
    return [token.principal_name for token in response.tokens]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_as_its_owner_until_it_ends(
    broker: AuthorizingBroker, mechanism: str
) -> None:
    renewers = [{"principal_type": "User", "principal_name": "bob"}]
    with broker.connect("alice") as alice:
        token = alice.call(request(38, 3, renewers=renewers))
    assert codes(token) == {"none"}
    wire, code = log_in(broker.bootstrap, token.token_id, token.hmac, mechanism)
    with wire:
        assert code == "none"
        topic = {"name": "hers", "num_partitions": 1, "replication_factor": 1}
        created = wire.call(request(19, 7, topics=[topic], validate_only=True))
        assert created.topics[0].error_code.name in ("none", "topic_already_exists")
        # A login by token may neither create nor see tokens.
        assert codes(wire.call(request(38, 3))) == {"delegation_token_request_not_allowed"}
        assert codes(wire.call(request(41, 3))) == {"delegation_token_request_not_allowed"}
    for user, sees in (("alice", True), ("bob", True), ("eve", True), ("admin", True)):
        with broker.connect(user) as connected:
            assert ("alice" in shown(connected)) is sees
    with broker.connect("eve") as eve:
        for key in (39, 40):
            refused = eve.call(request(key, 2, hmac=token.hmac))
            assert codes(refused) == {"delegation_token_owner_mismatch"}
        for_alice = request(38, 3, owner_principal_type="User", owner_principal_name="alice")
        assert codes(eve.call(for_alice)) == {"delegation_token_authorization_failed"}
    with broker.connect("bob") as bob:
        assert codes(bob.call(request(39, 2, hmac=token.hmac))) == {"none"}
        assert codes(bob.call(request(40, 2, hmac=token.hmac, expiry_time_period=AT_ONCE))) == {
            "none"
        }
    wire, code = log_in(broker.bootstrap, token.token_id, token.hmac, mechanism)
    with wire:
        assert code == "sasl_authentication_failed"
