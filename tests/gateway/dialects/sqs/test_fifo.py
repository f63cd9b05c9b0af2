"""FIFO queues through boto3."""

from pathlib import Path
from typing import Any

import pytest
from tests.gateway.dialects.sqs.boto import make_client, queue_name, receive
from tests.gateway.gateway_process import GatewayProcess


@pytest.fixture
def fifo(sqs: Any) -> str:
    attributes = {"FifoQueue": "true"}
    url: str = sqs.create_queue(QueueName=queue_name(".fifo"), Attributes=attributes)["QueueUrl"]
    return url


def send(sqs: Any, url: str, body: str, **options: str) -> Any:
    options.setdefault("MessageGroupId", "g")
    return sqs.send_message(QueueUrl=url, MessageBody=body, **options)


def delete(sqs: Any, url: str, message: Any) -> None:
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_messages_of_a_group_come_in_order(sqs: Any, fifo: str) -> None:
    sent = [send(sqs, fifo, f"{number}", MessageDeduplicationId=f"{number}") for number in range(5)]
    numbers = [each["SequenceNumber"] for each in sent]
    assert numbers == sorted(numbers)
    messages = []
    for _ in sent:
        messages += receive(sqs, fifo)
        assert "Messages" not in sqs.receive_message(QueueUrl=fifo, MaxNumberOfMessages=10)
        delete(sqs, fifo, messages[-1])
    assert [message["Body"] for message in messages] == ["0", "1", "2", "3", "4"]
    assert [message["MessageId"] for message in messages] == [each["MessageId"] for each in sent]
    assert messages[0]["Attributes"]["MessageGroupId"] == "g"
    assert messages[0]["Attributes"]["MessageDeduplicationId"] == "0"
    assert messages[0]["Attributes"]["SequenceNumber"] == numbers[0]


def test_a_group_waits_for_its_message_in_flight_and_others_go_on(sqs: Any, fifo: str) -> None:
    for group, body in ("a", "1"), ("a", "2"), ("b", "3"), ("b", "4"), ("c", "5"):
        send(sqs, fifo, body, MessageGroupId=group, MessageDeduplicationId=body)

    found = {message["Body"]: message for message in receive(sqs, fifo, 3)}
    assert set(found) == {"1", "3", "5"}
    delete(sqs, fifo, found["3"])
    (next_of_b,) = receive(sqs, fifo)
    assert next_of_b["Body"] == "4"
    sqs.change_message_visibility(
        QueueUrl=fifo, ReceiptHandle=found["1"]["ReceiptHandle"], VisibilityTimeout=0
    )
    (again,) = receive(sqs, fifo)
    assert (again["Body"], again["Attributes"]["ApproximateReceiveCount"]) == ("1", "2")
    delete(sqs, fifo, again)
    assert receive(sqs, fifo)[0]["Body"] == "2"


def test_duplicates_are_known_to_every_gateway(
    sqs: Any, fifo: str, bootstrap: str, tmp_path: Path
) -> None:
    first = send(sqs, fifo, "a", MessageDeduplicationId="same")
    with GatewayProcess(tmp_path, bootstrap) as other:
        url = other.url + fifo.removeprefix(sqs.meta.endpoint_url)
        second = send(make_client(other.url), url, "b", MessageDeduplicationId="same")
    assert second["MessageId"] == first["MessageId"]


def test_a_duplicate_is_the_message_that_was_sent_first(sqs: Any, fifo: str) -> None:
    first = send(sqs, fifo, "a", MessageDeduplicationId="same")
    second = send(sqs, fifo, "b", MessageDeduplicationId="same")
    assert second["MessageId"] == first["MessageId"]
    assert second["SequenceNumber"] == first["SequenceNumber"]
    (message,) = receive(sqs, fifo)
    assert message["Body"] == "a"
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])
    assert "Messages" not in sqs.receive_message(QueueUrl=fifo)


def test_what_a_fifo_queue_needs_is_asked_for(sqs: Any, fifo: str) -> None:
    for options in ({"MessageGroupId": "g"}, {"MessageDeduplicationId": "d"}):
        with pytest.raises(sqs.exceptions.ClientError):
            sqs.send_message(QueueUrl=fifo, MessageBody="x", **options)
    sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"ContentBasedDeduplication": "true"})
    sqs.send_message(QueueUrl=fifo, MessageBody="x", MessageGroupId="g")
