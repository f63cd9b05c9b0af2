"""Messages through boto3: sent ones are received, deleted ones never again."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from select import select
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from tests.gateway.dialects.sqs.boto import PATIENCE_S, queue_name, receive
from tests.gateway.gateway_process import GatewayProcess

ATTRIBUTES = {
    "text": {"StringValue": "größe", "DataType": "String"},
    "number": {"StringValue": "12.5", "DataType": "Number.price"},
    "blob": {"BinaryValue": b"\x00\xff", "DataType": "Binary"},
}


def test_a_message_is_sent_received_and_deleted(sqs: Any, queue: str) -> None:
    sent = sqs.send_message(QueueUrl=queue, MessageBody="hällo", MessageAttributes=ATTRIBUTES)
    assert sent["MD5OfMessageBody"] == hashlib.md5("hällo".encode()).hexdigest()

    (message,) = receive(sqs, queue)
    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == "hällo"
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    system = message["Attributes"]
    assert system["ApproximateReceiveCount"] == "1"
    assert system["SenderId"] == "alice"
    assert int(system["SentTimestamp"]) <= int(system["ApproximateFirstReceiveTimestamp"])

    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


def test_only_what_is_asked_for_is_told(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="a", MessageAttributes=ATTRIBUTES)
    (message,) = receive(
        sqs,
        queue,
        MessageSystemAttributeNames=["SentTimestamp"],
        MessageAttributeNames=["num*", "text"],
    )
    assert set(message["Attributes"]) == {"SentTimestamp"}
    assert set(message["MessageAttributes"]) == {"text"}


def test_batches_are_answered_entry_by_entry(sqs: Any, queue: str) -> None:
    entries = [{"Id": f"e{number}", "MessageBody": f"{number}"} for number in range(9)]
    bad = {"Id": "bad", "MessageBody": "x", "DelaySeconds": 901}
    sent = sqs.send_message_batch(QueueUrl=queue, Entries=[*entries, bad])
    assert [each["Id"] for each in sent["Successful"]] == [each["Id"] for each in entries]
    assert [(each["Id"], each["SenderFault"]) for each in sent["Failed"]] == [("bad", True)]
    assert sent["Failed"][0]["Code"] == "InvalidParameterValue"

    messages = receive(sqs, queue, 9)
    assert {message["Body"] for message in messages} == {f"{number}" for number in range(9)}
    deletions = [
        {"Id": f"{index}", "ReceiptHandle": message["ReceiptHandle"]}
        for index, message in enumerate(messages)
    ]
    deleted = sqs.delete_message_batch(
        QueueUrl=queue, Entries=[*deletions, {"Id": "bad", "ReceiptHandle": "nonsense"}]
    )
    assert len(deleted["Successful"]) == 9
    assert [each["Code"] for each in deleted["Failed"]] == ["ReceiptHandleIsInvalid"]
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)


def test_a_message_comes_again_when_its_visibility_timeout_ends(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="again")
    (first,) = receive(sqs, queue, VisibilityTimeout=1)
    (second,) = receive(sqs, queue)
    assert second["MessageId"] == first["MessageId"]
    assert second["Attributes"]["ApproximateReceiveCount"] == "2"


def test_visibility_is_changed_to_nothing_and_prolonged(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="again")
    (first,) = receive(sqs, queue, VisibilityTimeout=600)
    change = {"QueueUrl": queue, "ReceiptHandle": first["ReceiptHandle"]}
    sqs.change_message_visibility(**change, VisibilityTimeout=43_200)
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    sqs.change_message_visibility(**change, VisibilityTimeout=0)
    (second,) = receive(sqs, queue)
    entries = [
        {"Id": "a", "ReceiptHandle": second["ReceiptHandle"], "VisibilityTimeout": 0},
        {"Id": "b", "ReceiptHandle": "nonsense", "VisibilityTimeout": 1},
        {"Id": "c", "ReceiptHandle": second["ReceiptHandle"], "VisibilityTimeout": 43_201},
    ]
    changed = sqs.change_message_visibility_batch(QueueUrl=queue, Entries=entries)
    assert [each["Id"] for each in changed["Successful"]] == ["a"]
    assert {each["Id"]: each["Code"] for each in changed["Failed"]} == {
        "b": "ReceiptHandleIsInvalid",
        "c": "InvalidParameterValue",
    }
    assert receive(sqs, queue)[0]["Attributes"]["ApproximateReceiveCount"] == "3"


def test_a_long_poll_ends_when_a_message_comes(sqs: Any, queue: str) -> None:
    sqs.receive_message(QueueUrl=queue)
    sender = threading.Timer(0.5, lambda: sqs.send_message(QueueUrl=queue, MessageBody="late"))
    sender.start()
    assert receive(sqs, queue)[0]["Body"] == "late"
    sender.join()


def test_what_sqs_sends_a_kafka_consumer_reads(sqs: Any, queue: str, bootstrap: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="for all", MessageAttributes=ATTRIBUTES)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "k", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([queue.rpartition("/")[2]])
    message = None
    while message is None:
        message = consumer.poll(10)
    consumer.close()
    assert message.value() == b"for all"
    headers = dict(message.headers() or [])
    assert headers["text"] == "größe".encode()
    assert headers["blob"] == b"\x00\xff"


def test_what_a_kafka_producer_writes_sqs_receives(sqs: Any, topic: str, bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value=b"plain", key=b"k", headers=[("a", b"x"), ("b", b"\xff")])
    producer.produce(topic, value=b"\xff\x00")
    assert producer.flush(120) == 0
    url = sqs.get_queue_url(QueueName=topic)["QueueUrl"]
    by_body = {message["Body"]: message for message in receive(sqs, url, 2)}
    plain = by_body["plain"]
    assert plain["Attributes"]["MessageGroupId"] == "k"
    assert plain["MessageAttributes"]["a"] == {"StringValue": "x", "DataType": "String"}
    assert plain["MessageAttributes"]["b"] == {"BinaryValue": b"\xff", "DataType": "Binary"}
    encoded = by_body[base64.b64encode(b"\xff\x00").decode()]
    assert encoded["MessageAttributes"]["ottla-encoding"]["StringValue"] == "base64"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"MessageBody": ""}, "MissingParameter"),
        ({"MessageBody": "\x01"}, "InvalidMessageContents"),
        ({"MessageBody": "\ud800"}, "InvalidMessageContents"),
        ({"MessageBody": "x", "MessageGroupId": "\ud800"}, "InvalidParameterValue"),
        (
            {
                "MessageBody": "x",
                "MessageSystemAttributes": {
                    "AWSTraceHeader": {"StringValue": "\ud800", "DataType": "String"}
                },
            },
            "InvalidParameterValue",
        ),
        ({"MessageBody": "x" * 1_048_577}, "InvalidParameterValue"),
        ({"MessageBody": "x", "DelaySeconds": -1}, "InvalidParameterValue"),
        ({"MessageBody": "x", "MessageDeduplicationId": "d"}, "InvalidParameterValue"),
        (
            {"MessageBody": "x", "MessageAttributes": {"a": {"DataType": "Odd"}}},
            "InvalidParameterValue",
        ),
    ],
)
def test_bad_messages_are_refused(sqs: Any, queue: str, options: Any, code: str) -> None:
    with pytest.raises(sqs.exceptions.ClientError) as raised:
        sqs.send_message(QueueUrl=queue, **options)
    assert raised.value.response["Error"]["Code"] == code


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "EmptyBatchRequest"),
        ([{"Id": "a", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
        (
            [{"Id": f"{number}", "MessageBody": "x"} for number in range(11)],
            "TooManyEntriesInBatchRequest",
        ),
        (
            [{"Id": f"{number}", "MessageBody": "x" * 600_000} for number in range(2)],
            "BatchRequestTooLong",
        ),
    ],
)
def test_bad_batches_are_refused(sqs: Any, queue: str, entries: Any, code: str) -> None:
    with pytest.raises(getattr(sqs.exceptions, code)) as raised:
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    assert raised.value.response["Error"]["Code"] == f"AWS.SimpleQueueService.{code}"


def test_requests_about_no_queue_are_refused(sqs: Any, queue: str) -> None:
    operations: tuple[Callable[[], object], ...] = (
        lambda: sqs.get_queue_url(QueueName=queue_name()),
        lambda: sqs.send_message(QueueUrl=queue + "x", MessageBody="x"),
        lambda: sqs.receive_message(QueueUrl=queue + "x"),
        lambda: sqs.delete_queue(QueueUrl=queue + "x"),
        lambda: sqs.send_message(QueueUrl="http://h/0/__gateway", MessageBody="x"),
    )
    for operation in operations:
        with pytest.raises(sqs.exceptions.QueueDoesNotExist) as raised:
            operation()
        code = raised.value.response["Error"]["Code"]
        assert code == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.parametrize(
    "options",
    [
        {"MaxNumberOfMessages": 0},
        {"MaxNumberOfMessages": 11},
        {"WaitTimeSeconds": 21},
        {"VisibilityTimeout": 43_201},
    ],
)
def test_receive_parameters_are_bounded(sqs: Any, queue: str, options: Any) -> None:
    with pytest.raises(sqs.exceptions.ClientError) as raised:
        sqs.receive_message(QueueUrl=queue, **options)
    assert raised.value.response["Error"]["Code"] == "InvalidParameterValue"


def test_a_delayed_message_is_not_early(sqs: Any, queue: str, own_broker: Any) -> None:
    sent_at = time.time()
    sqs.send_message(QueueUrl=queue, MessageBody="later", DelaySeconds=2)
    assert receive(sqs, queue)[0]["Body"] == "later"
    assert time.time() - sent_at >= 2


def test_nothing_is_kept_for_a_receiver_that_hung_up(
    sqs: Any, queue: str, gateway: GatewayProcess
) -> None:
    """Its wait ends, although the message would be invisible for an hour."""
    body = json.dumps({"QueueUrl": queue, "WaitTimeSeconds": 20, "VisibilityTimeout": 3_600})
    host, port = gateway.url.removeprefix("http://").split(":")
    gone = [HTTPConnection(host, int(port)) for _ in range(5)]
    headers = {"X-Amz-Target": "AmazonSQS.ReceiveMessage"}
    for connection in gone:
        connection.request("POST", "/", body, headers)
    sqs.send_message(QueueUrl=queue, MessageBody="first")
    receive_any(gone)
    for connection in gone:
        connection.close()
    sqs.send_message(QueueUrl=queue, MessageBody="second")

    (message,) = receive(sqs, queue)
    assert message["Body"] == "second"
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def receive_any(connections: list[HTTPConnection]) -> None:
    """Received by one of them; so all of them wait or have waited."""
    answered = select([each.sock for each in connections], [], [], PATIENCE_S)[0]
    assert answered
