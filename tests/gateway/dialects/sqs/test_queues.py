"""Queue management through boto3: create, list, describe, change, delete."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.gateway.dialects.sqs.boto import make_client, queue_name, receive
from tests.gateway.gateway_process import GatewayProcess


def test_a_queue_is_made_once(sqs: Any) -> None:
    name = queue_name()
    attributes = {"VisibilityTimeout": "45", "DelaySeconds": "0"}
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    assert url.endswith(f"/000000000000/{name}")
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"] == url
    with pytest.raises(sqs.exceptions.QueueNameExists) as raised:
        sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "46"})
    assert raised.value.response["Error"]["Code"] == "QueueAlreadyExists"


def test_queues_are_listed_by_prefix_and_in_pages(sqs: Any) -> None:
    prefix = queue_name("-page")
    urls = [sqs.create_queue(QueueName=f"{prefix}-{number}")["QueueUrl"] for number in range(3)]
    assert sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"] == urls
    pages = sqs.get_paginator("list_queues").paginate(
        QueueNamePrefix=prefix, PaginationConfig={"PageSize": 2}
    )
    assert [page["QueueUrls"] for page in pages] == [urls[:2], urls[2:]]
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix=f"{prefix}-none")


def test_a_deleted_queue_is_gone_and_can_be_made_again(sqs: Any, queue: str) -> None:
    name = queue.rpartition("/")[2]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "45"})
    sqs.delete_queue(QueueUrl=queue)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.get_queue_url(QueueName=name)
    sqs.create_queue(QueueName=name)
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["VisibilityTimeout"])
    assert found["Attributes"] == {"VisibilityTimeout": "30"}


def test_attributes_are_kept_and_seen_by_another_gateway(
    sqs: Any, queue: str, bootstrap: str, tmp_path: Any
) -> None:
    sqs.set_queue_attributes(
        QueueUrl=queue,
        Attributes={"ReceiveMessageWaitTimeSeconds": "3", "MessageRetentionPeriod": "600"},
    )
    with GatewayProcess(tmp_path, bootstrap) as second:
        client = make_client(second.url)
        found = client.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
        client.close()
    assert found["ReceiveMessageWaitTimeSeconds"] == "3"
    assert found["MessageRetentionPeriod"] == "600"
    name = queue.rpartition("/")[2]
    assert found["QueueArn"] == f"arn:aws:sqs:eu-central-1:000000000000:{name}"
    assert int(found["CreatedTimestamp"]) <= int(time.time())
    assert "FifoQueue" not in found
    assert "RedrivePolicy" not in found


def test_counts_are_true_when_nothing_moves(sqs: Any, queue: str) -> None:
    names = ["ApproximateNumberOfMessages"]
    for number in range(3):
        sqs.send_message(QueueUrl=queue, MessageBody=f"{number}")
    (message,) = receive(sqs, queue)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    assert found == {"ApproximateNumberOfMessages": "2"}
    sqs.purge_queue(QueueUrl=queue)
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    assert found == {"ApproximateNumberOfMessages": "0"}
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)


def test_a_purged_queue_is_empty_and_its_topic_is_not(sqs: Any, queue: str, bootstrap: str) -> None:
    name = queue.rpartition("/")[2]
    for round_ in range(2):  # The first one before any receive.
        for number in range(3):
            sqs.send_message(QueueUrl=queue, MessageBody=f"{round_}-{number}")
        if round_:
            held = receive(sqs, queue)
        sqs.purge_queue(QueueUrl=queue)
        assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=held[0]["ReceiptHandle"])
    sqs.send_message(QueueUrl=queue, MessageBody="new")
    assert receive(sqs, queue)[0]["Body"] == "new"

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([name])
    values: set[bytes | None] = set()
    while len(values) < 7:
        message = consumer.poll(10)
        if message is not None and message.error() is None:
            values.add(message.value())
    consumer.close()


def test_tags_are_put_on_and_taken_off(sqs: Any) -> None:
    url = sqs.create_queue(QueueName=queue_name(), tags={"team": "a"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={"cost": "1", "team": "b"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "b", "cost": "1"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["team", "nothing"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"cost": "1"}


def test_bad_names_and_attributes_are_refused(sqs: Any, queue: str) -> None:
    with pytest.raises(sqs.exceptions.ClientError) as raised:
        sqs.create_queue(QueueName="no good")
    assert raised.value.response["Error"]["Code"] == "InvalidParameterValue"
    with pytest.raises(sqs.exceptions.InvalidAttributeValue):
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"DelaySeconds": "901"})
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Odd": "1"})
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["Odd"])


def arn_of(url: str) -> str:
    return f"arn:aws:sqs:eu-central-1:000000000000:{url.rpartition('/')[2]}"


def redrive_to(dead: str, count: int) -> dict[str, str]:
    return {
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": arn_of(dead), "maxReceiveCount": count})
    }


def test_a_message_that_is_never_deleted_goes_to_the_dead_letter_queue_and_back(sqs: Any) -> None:
    dead = sqs.create_queue(QueueName=queue_name("-dead"))["QueueUrl"]
    policy = redrive_to(dead, 2)
    url = sqs.create_queue(QueueName=queue_name(), Attributes=policy)["QueueUrl"]
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]

    sent = sqs.send_message(QueueUrl=url, MessageBody="poison")
    for count in (1, 2):
        (message,) = receive(sqs, url)
        assert message["Attributes"]["ApproximateReceiveCount"] == str(count)
        sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
    (letter,) = receive(sqs, dead)
    assert (letter["Body"], letter["MessageId"]) == ("poison", sent["MessageId"])
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(url)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    # A task does not wait for records that consumers hold.
    sqs.change_message_visibility(
        QueueUrl=dead, ReceiptHandle=letter["ReceiptHandle"], VisibilityTimeout=0
    )

    sqs.start_message_move_task(SourceArn=arn_of(dead))
    (message,) = receive(sqs, url)
    assert (message["Body"], message["MessageId"]) == ("poison", sent["MessageId"])
    while (task := moves(sqs, dead)[0])["Status"] == "RUNNING":
        time.sleep(0.1)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    assert "Messages" not in sqs.receive_message(QueueUrl=dead)


@pytest.mark.parametrize("count", [1, 12])
def test_messages_are_received_as_often_as_the_policy_says(sqs: Any, count: int) -> None:
    dead = sqs.create_queue(QueueName=queue_name("-dead"))["QueueUrl"]
    url = sqs.create_queue(QueueName=queue_name(), Attributes=redrive_to(dead, count))["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="poison")
    for expected in range(1, count + 1):
        give_back(sqs, url, expected)
    assert receive(sqs, dead)[0]["Body"] == "poison"


def test_without_a_policy_a_message_comes_again_and_again(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="again")
    for expected in range(1, 15):
        give_back(sqs, queue, expected)


def give_back(sqs: Any, url: str, expected: int) -> None:
    (message,) = receive(sqs, url)
    assert message["Attributes"]["ApproximateReceiveCount"] == str(expected)
    sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
    )


def test_a_move_that_fails_leaves_its_messages_visible(sqs: Any) -> None:
    """Messages without their origin."""
    dead = sqs.create_queue(QueueName=queue_name("-dead"))["QueueUrl"]
    sqs.create_queue(QueueName=queue_name(), Attributes=redrive_to(dead, 2))
    for number in range(3):
        sqs.send_message(QueueUrl=dead, MessageBody=f"{number}")

    sqs.start_message_move_task(SourceArn=arn_of(dead))
    while (task := moves(sqs, dead)[0])["Status"] == "RUNNING":
        time.sleep(0.1)
    assert task["Status"] == "FAILED"
    found = receive(sqs, dead, 3)
    assert [each["Attributes"]["ApproximateReceiveCount"] for each in found] == ["1"] * 3


def moves(sqs: Any, url: str) -> list[Any]:
    results: list[Any] = sqs.list_message_move_tasks(SourceArn=arn_of(url))["Results"]
    return results


def test_move_tasks_are_refused_where_there_is_nothing_to_move(sqs: Any, queue: str) -> None:
    with pytest.raises(sqs.exceptions.ClientError) as raised:
        sqs.start_message_move_task(SourceArn=arn_of(queue))
    assert raised.value.response["Error"]["Code"] == "InvalidParameterValue"
    with pytest.raises(sqs.exceptions.ResourceNotFoundException):
        sqs.start_message_move_task(SourceArn=arn_of(queue + "x"))
    with pytest.raises(sqs.exceptions.ClientError):
        sqs.cancel_message_move_task(TaskHandle="nonsense")
    with pytest.raises(sqs.exceptions.ClientError):
        sqs.create_queue(QueueName=queue_name(), Attributes=redrive_to(queue + "x", 2))
