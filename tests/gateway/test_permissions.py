"""A gateway for brokers with ACLs: each user may do what the brokers permit."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.broker_process import BrokerProcess
from tests.gateway.gateway_process import PATIENT, GatewayProcess
from tests.gateway.test_login import properties, set_passwords
from tests.ports import HOST, ReservedPort

pytestmark = pytest.mark.process

PASSWORDS = {"gateway": "of the gateway", "alice": "a", "bob": "b"}
ALICE, BOB = ("alice", "a"), ("bob", "b")
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS
# As in docs/http.md.
GRANTS = [
    ("gateway", TOPIC, "__gateway", PREFIXED, (READ, WRITE, CREATE, DESCRIBE_CONFIGS)),
    ("alice", TOPIC, "orders", LITERAL, (READ, WRITE)),
    ("alice", TOPIC, "__gateway_idempotency", LITERAL, (READ, WRITE, CREATE)),
    ("alice", ResourceType.TRANSACTIONAL_ID, "__gateway_idempotency", PREFIXED, (WRITE,)),
    ("alice", GROUP, "workers", LITERAL, (READ, DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)),
    ("alice", TOPIC, "__gateway_sqs", PREFIXED, (READ, WRITE, CREATE, DESCRIBE_CONFIGS)),
    ("alice", TOPIC, "tasks", LITERAL, (READ, WRITE, CREATE, DESCRIBE_CONFIGS)),
    ("alice", GROUP, "sqs", PREFIXED, (READ, DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)),
    ("bob", TOPIC, "orders", LITERAL, (READ,)),
    ("bob", TOPIC, "__gateway_sqs", PREFIXED, (READ, WRITE)),
    ("bob", TOPIC, "tasks", LITERAL, (DESCRIBE,)),
]


def allow(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    bindings = [
        AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        for user, kind, name, pattern, operations in GRANTS
        for operation in operations
    ]
    for future in admin.create_acls(bindings).values():
        future.result(120)
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(120)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("permissions")
    (directory / "ca.pem").touch()
    users = directory / "users"
    users.touch(0o600)
    users.write_text("".join(f"{name}:{password}\n" for name, password in PASSWORDS.items()))
    plain, sasl = ReservedPort(), ReservedPort()
    arguments = [
        f"--listener=PLAINTEXT://{HOST}:{plain}",
        f"--listener=SASL_PLAINTEXT://{HOST}:{sasl}",
        "--set=sasl.enabled.mechanisms=SCRAM-SHA-512",
        "--set=authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "--set=super.users=User:ANONYMOUS",
    ]
    login = properties(
        directory,
        "gateway",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="gateway",
        sasl_password=PASSWORDS["gateway"],
    )
    words = ("--command-config", str(login), "--auth", "basic", "--sqs-users", str(users))
    with BrokerProcess(directory, *arguments, port=plain):
        set_passwords(f"{HOST}:{plain}", PASSWORDS)
        allow(f"{HOST}:{plain}")
        with GatewayProcess(directory, f"{HOST}:{sasl}", *words) as process:
            yield process


@pytest.fixture
def http(gateway: GatewayProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=gateway.url, timeout=PATIENT) as client:
        yield client


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def test_users_do_what_acls_let_them(http: httpx.Client) -> None:
    order = {"topic": "orders", "message": "x"}
    assert http.post("/publish", json=order, auth=ALICE).status_code == 200
    assert http.post("/publish", json=order, auth=BOB).status_code == 403
    other = http.post("/publish", json=order | {"topic": "others"}, auth=ALICE)
    assert error_of(other) == (403, "TOPIC_AUTHORIZATION_FAILED")
    records = "/topics/orders/partitions/0/records?offset=0"
    assert http.get(records, auth=BOB).status_code == 200
    key = {"Idempotency-Key": "1"}
    assert http.post("/publish", json=order, headers=key, auth=ALICE).status_code == 200


def test_only_who_may_read_as_a_group_receives_and_acknowledges(http: httpx.Client) -> None:
    queue = "/queues/orders/workers"
    http.post("/publish", json={"topic": "orders", "message": "x"}, auth=ALICE).raise_for_status()
    refused = http.post(f"{queue}:receive", json={"wait": 0}, auth=BOB)
    assert error_of(refused) == (403, "GROUP_AUTHORIZATION_FAILED")
    received = http.post(f"{queue}:receive", json={"wait": 60}, auth=ALICE).json()["deliveries"]
    handle = received[0]["delivery"]
    refused = http.post(f"{queue}:ack", json={"delivery": handle}, auth=BOB)
    assert error_of(refused) == (403, "GROUP_AUTHORIZATION_FAILED")
    results = http.post(f"{queue}:ack", json={"deliveries": [handle]}, auth=BOB).json()["results"]
    assert results[0]["error"] == "forbidden"
    assert http.post(f"{queue}:ack", json={"delivery": handle}, auth=ALICE).status_code == 204


def sqs_client(gateway: GatewayProcess, name: str, password: str) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=gateway.url,
        region_name="eu-central-1",
        aws_access_key_id=name,
        aws_secret_access_key=password,
    )


def refusal(call: Callable[..., Any], **arguments: str) -> str:
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    code: str = refused.value.response["Error"]["Code"]
    return code


def test_sqs_clients_sign_as_users_of_the_brokers(gateway: GatewayProcess) -> None:
    sqs = sqs_client(gateway, *ALICE)
    url = sqs.create_queue(QueueName="tasks")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    own = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}
    other = sqs_client(gateway, *BOB)
    assert refusal(other.send_message, QueueUrl=url, MessageBody="x") == "AccessDenied"
    assert refusal(other.delete_message, **own) == "AccessDenied"
    assert refusal(other.create_queue, QueueName="more") == "AccessDenied"
    sqs.delete_message(**own)


def test_sqs_clients_with_another_secret_are_refused(gateway: GatewayProcess) -> None:
    wrong = sqs_client(gateway, "alice", "wrong")
    assert refusal(wrong.list_queues) == "SignatureDoesNotMatch"
    assert refusal(sqs_client(gateway, "nobody", "x").list_queues) == "InvalidClientTokenId"
