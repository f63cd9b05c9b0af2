"""FIFO queues through boto3."""

from typing import Any

import pytest
from tests.gateway.dialects.sqs.boto import queue_name, receive


@pytest.fixture
def fifo(sqs: Any) -> str:
    attributes = {"FifoQueue": "true"}
    url: str = sqs.create_queue(QueueName=queue_name(".fifo"), Attributes=attributes)["QueueUrl"]
    return url


def send(sqs: Any, url: str, body: str, **options: str) -> Any:
    options.setdefault("MessageGroupId", "g")
    return sqs.send_message(QueueUrl=url, MessageBody=body, **options)


def test_messages_of_a_group_come_in_order(sqs: Any, fifo: str) -> None:
    sent = [send(sqs, fifo, f"{number}", MessageDeduplicationId=f"{number}") for number in range(5)]
    numbers = [each["SequenceNumber"] for each in sent]
    assert numbers == sorted(numbers)
    messages = receive(sqs, fifo, 5)
    assert [message["Body"] for message in messages] == ["0", "1", "2", "3", "4"]
    assert [message["MessageId"] for message in messages] == [each["MessageId"] for each in sent]
    assert messages[0]["Attributes"]["MessageGroupId"] == "g"
    assert messages[0]["Attributes"]["MessageDeduplicationId"] == "0"
    assert messages[0]["Attributes"]["SequenceNumber"] == numbers[0]


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
