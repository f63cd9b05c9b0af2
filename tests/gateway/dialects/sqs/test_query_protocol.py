from xml.etree import ElementTree as ET

import pytest

from ottla.gateway.dialects.sqs.errors import SqsError, no_queue
from ottla.gateway.dialects.sqs.query_protocol import answer, error_answer, parameters_of, parse

NAMESPACE = {"q": "http://queue.amazonaws.com/doc/2012-11-05/"}


def test_lists_maps_and_structures_are_read() -> None:
    form = (
        b"Action=SendMessageBatch&QueueUrl=http%3A%2F%2Fh%2F0%2Fq"
        b"&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=two"
        b"&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=one+1"
        b"&SendMessageBatchRequestEntry.1.DelaySeconds=3"
        b"&SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=n"
        b"&SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType=Number"
        b"&SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringValue=7"
    )
    assert parse("SendMessageBatch", parameters_of(form, b"")) == {
        "QueueUrl": "http://h/0/q",
        "Entries": [
            {
                "Id": "a",
                "MessageBody": "one 1",
                "DelaySeconds": 3,
                "MessageAttributes": {"n": {"DataType": "Number", "StringValue": "7"}},
            },
            {"Id": "b", "MessageBody": "two"},
        ],
    }


def test_the_query_string_counts_as_well() -> None:
    parameters = parameters_of(b"Attribute.1.Name=DelaySeconds&Attribute.1.Value=5", b"QueueName=q")
    assert parse("CreateQueue", parameters) == {
        "QueueName": "q",
        "Attributes": {"DelaySeconds": "5"},
    }


@pytest.mark.parametrize(
    "form",
    [
        b"AttributeName.x=1",
        b"MaxNumberOfMessages=many",
        b"QueueUrl=a&AttributeName.1.b=1&AttributeName.1.b.c=2",
    ],
)
def test_malformed_parameters_are_refused(form: bytes) -> None:
    with pytest.raises(SqsError):
        parse("ReceiveMessage", parameters_of(form, b""))


def test_answers_are_flattened_xml() -> None:
    message = {
        "MessageId": "1",
        "Body": "<a> & \r\n",
        "Attributes": {"SentTimestamp": "5"},
        "MessageAttributes": {"n": {"StringValue": "7", "DataType": "Number"}},
    }
    root = ET.fromstring(answer("ReceiveMessage", {"Messages": [message]}, "id"))
    found = root.find("q:ReceiveMessageResult/q:Message", NAMESPACE)
    assert found is not None
    assert found.findtext("q:Body", namespaces=NAMESPACE) == "<a> & \r\n"
    assert found.findtext("q:Attribute/q:Name", namespaces=NAMESPACE) == "SentTimestamp"
    assert found.findtext("q:Attribute/q:Value", namespaces=NAMESPACE) == "5"
    value = "q:MessageAttribute/q:Value/q:StringValue"
    assert found.findtext(value, namespaces=NAMESPACE) == "7"
    assert root.findtext("q:ResponseMetadata/q:RequestId", namespaces=NAMESPACE) == "id"


def test_errors_have_the_codes_of_the_query_protocol() -> None:
    root = ET.fromstring(error_answer(no_queue(), "id"))
    code = root.findtext("q:Error/q:Code", namespaces=NAMESPACE)
    assert code == "AWS.SimpleQueueService.NonExistentQueue"
    assert root.findtext("q:Error/q:Type", namespaces=NAMESPACE) == "Sender"
