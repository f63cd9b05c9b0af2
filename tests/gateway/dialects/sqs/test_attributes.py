import json

import pytest

from ottla.gateway.dialects.sqs.attributes import (
    different_attribute,
    redrive_policy,
    validate_attributes,
    validate_queue_name,
    with_defaults,
)
from ottla.gateway.dialects.sqs.errors import SqsError

ARN = "arn:aws:sqs:us-east-1:000000000000:dead"


@pytest.mark.parametrize("name", ["orders", "a" * 80, "orders.fifo", "A_b-9"])
def test_valid_names(name: str) -> None:
    validate_queue_name(name)


@pytest.mark.parametrize("name", ["", "a" * 81, "a.b", "fifo.", "ä", ".fifo", "a b"])
def test_invalid_names(name: str) -> None:
    with pytest.raises(SqsError):
        validate_queue_name(name)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("DelaySeconds", "901", "InvalidAttributeValue"),
        ("DelaySeconds", "-1", "InvalidAttributeValue"),
        ("DelaySeconds", "x", "InvalidAttributeValue"),
        ("VisibilityTimeout", "43201", "InvalidAttributeValue"),
        ("MaximumMessageSize", "1023", "InvalidAttributeValue"),
        ("Policy", "[]", "InvalidAttributeValue"),
        ("RedrivePolicy", "{}", "InvalidAttributeValue"),
        ("QueueArn", "x", "InvalidAttributeName"),
        ("FifoQueue", "true", "InvalidAttributeName"),
        ("Nothing", "x", "InvalidAttributeName"),
    ],
)
def test_invalid_attributes_of_a_standard_queue(name: str, value: str, error: str) -> None:
    with pytest.raises(SqsError) as raised:
        validate_attributes("orders", {name: value}, at_creation=True)
    assert raised.value.name == error


def test_a_fifo_queue_must_say_that_it_is_one() -> None:
    validate_attributes("orders.fifo", {"FifoQueue": "true"}, at_creation=True)
    with pytest.raises(SqsError):
        validate_attributes("orders.fifo", {}, at_creation=True)
    with pytest.raises(SqsError):
        validate_attributes("orders.fifo", {"FifoQueue": "false"}, at_creation=True)


def test_attributes_that_were_not_asked_for_do_not_differ() -> None:
    kept = {"DelaySeconds": "5"}
    assert different_attribute("orders", kept, {}) is None
    assert different_attribute("orders", kept, {"DelaySeconds": "5"}) is None
    assert different_attribute("orders", kept, {"VisibilityTimeout": "30"}) is None
    assert different_attribute("orders", kept, {"VisibilityTimeout": "31"}) == "VisibilityTimeout"


def test_policies_are_compared_by_what_they_say() -> None:
    policy = {"deadLetterTargetArn": ARN, "maxReceiveCount": 3}
    kept = {"RedrivePolicy": json.dumps(policy)}
    asked = {"RedrivePolicy": json.dumps(policy, indent=2, sort_keys=True)}
    assert different_attribute("orders", kept, asked) is None


def test_an_empty_value_removes_a_policy() -> None:
    assert "RedrivePolicy" not in with_defaults("orders", {"RedrivePolicy": ""})


@pytest.mark.parametrize(
    "policy",
    [
        "no json",
        "[]",
        json.dumps({"maxReceiveCount": 1}),
        json.dumps({"deadLetterTargetArn": ARN}),
        json.dumps({"deadLetterTargetArn": "dead", "maxReceiveCount": 1}),
        json.dumps({"deadLetterTargetArn": ARN, "maxReceiveCount": 0}),
        json.dumps({"deadLetterTargetArn": ARN, "maxReceiveCount": 1001}),
        json.dumps({"deadLetterTargetArn": ARN, "maxReceiveCount": "x"}),
    ],
)
def test_invalid_redrive_policies(policy: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        redrive_policy(policy)


def test_a_receive_count_may_be_text() -> None:
    policy = redrive_policy(json.dumps({"deadLetterTargetArn": ARN, "maxReceiveCount": "3"}))
    assert policy == ("dead", 3)
