"""Every response has the shape in botocore's model, in both protocols."""

import json
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import botocore.session
import httpx
import pytest
from tests.gateway.dialects.sqs.boto import queue_name

MODEL = botocore.session.get_session().get_service_model("sqs")
NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"
Request = dict[str, Any]
Caller = Callable[..., Any]

# Error codes that are not in the model; real SQS has them as well.
COMMON_ERRORS = {
    "InvalidParameterValueException",
    "MissingParameterException",
    "SerializationException",
    "UnknownOperationException",
}


def call(http: httpx.Client, operation: str, request: Request) -> httpx.Response:
    return http.post(
        "/",
        content=json.dumps(request),
        headers={
            "X-Amz-Target": f"AmazonSQS.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
        },
    )


def validate(value: Any, shape: Any, path: str) -> None:
    match shape.type_name:
        case "structure":
            assert isinstance(value, dict), path
            assert value.keys() <= shape.members.keys(), path
            assert set(shape.required_members) <= value.keys(), path
            for name, member in value.items():
                validate(member, shape.members[name], f"{path}.{name}")
        case "list":
            assert isinstance(value, list), path
            for item in value:
                validate(item, shape.member, f"{path}[]")
        case "map":
            assert isinstance(value, dict), path
            for key, item in value.items():
                validate(key, shape.key, f"{path}.key")
                validate(item, shape.value, f"{path}[{key}]")
        case "string" | "blob":
            assert isinstance(value, str), path
            assert value in (getattr(shape, "enum", None) or [value]), path
        case "boolean":
            assert isinstance(value, bool), path
        case "integer" | "long":
            assert type(value) is int, path
        case other:
            raise AssertionError(other)


class Scene:
    """A queue with messages, and its dead-letter queue, for raw requests."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self.dead = self.call("CreateQueue", {"QueueName": queue_name("-dead")})["QueueUrl"]
        policy = {"deadLetterTargetArn": self.arn(self.dead), "maxReceiveCount": 5}
        self.url = self.call(
            "CreateQueue",
            {
                "QueueName": queue_name(),
                "Attributes": {"RedrivePolicy": json.dumps(policy)},
                "tags": {"a": "b"},
            },
        )["QueueUrl"]

    @staticmethod
    def arn(url: str) -> str:
        return f"arn:aws:sqs:us-east-1:000000000000:{url.rpartition('/')[2]}"

    def call(self, operation: str, request: Request) -> Any:
        answer = call(self._http, operation, request)
        assert answer.status_code == 200, answer.text
        shape = MODEL.operation_model(operation).output_shape
        if shape is None:
            assert answer.content == b""
            return None
        validate(answer.json(), shape, operation)
        return answer.json()

    def send(self) -> None:
        attributes = {
            "n": {"StringValue": "1", "DataType": "Number"},
            "b": {"BinaryValue": "/w==", "DataType": "Binary"},
        }
        request = {"MessageBody": "x", "MessageAttributes": attributes}
        self.call("SendMessage", {"QueueUrl": self.url, **request})

    def receive(self) -> str:
        request = {
            "QueueUrl": self.url,
            "WaitTimeSeconds": 20,
            "AttributeNames": ["All"],
            "MessageAttributeNames": ["All"],
        }
        while True:
            messages = self.call("ReceiveMessage", request).get("Messages", [])
            if messages:
                return str(messages[0]["ReceiptHandle"])


def test_every_answer_has_the_shape_of_the_model(http: httpx.Client) -> None:
    scene = Scene(http)
    url = {"QueueUrl": scene.url}
    trace = {"AWSTraceHeader": {"StringValue": "Root=1-2", "DataType": "String"}}
    scene.call("SendMessage", {**url, "MessageBody": "t", "MessageSystemAttributes": trace})
    for _ in range(5):
        scene.send()
    entries = [{"Id": "a", "MessageBody": "x"}, {"Id": "b", "MessageBody": ""}]
    scene.call("SendMessageBatch", {**url, "Entries": entries})
    scene.call("DeleteMessage", {**url, "ReceiptHandle": scene.receive()})
    handles = [{"Id": "a", "ReceiptHandle": scene.receive()}, {"Id": "b", "ReceiptHandle": "x"}]
    visible = [{**handle, "VisibilityTimeout": 30} for handle in handles]
    scene.call("ChangeMessageVisibilityBatch", {**url, "Entries": visible})
    scene.call("DeleteMessageBatch", {**url, "Entries": handles})
    handle = {"ReceiptHandle": scene.receive(), "VisibilityTimeout": 30}
    scene.call("ChangeMessageVisibility", {**url, **handle})
    scene.call("GetQueueUrl", {"QueueName": scene.url.rpartition("/")[2]})
    scene.call("ListQueues", {"MaxResults": 1})
    scene.call("GetQueueAttributes", {**url, "AttributeNames": ["All"]})
    scene.call("SetQueueAttributes", {**url, "Attributes": {"DelaySeconds": "0"}})
    scene.call("ListDeadLetterSourceQueues", {"QueueUrl": scene.dead})
    scene.call("TagQueue", {**url, "Tags": {"k": "v"}})
    scene.call("UntagQueue", {**url, "TagKeys": ["k"]})
    scene.call("ListQueueTags", url)
    source = {"SourceArn": scene.arn(scene.dead)}
    destination = {"DestinationArn": scene.arn(scene.url), "MaxNumberOfMessagesPerSecond": 1}
    scene.call("StartMessageMoveTask", {**source, **destination})
    scene.call("ListMessageMoveTasks", source)
    scene.call("PurgeQueue", url)
    scene.call("DeleteQueue", url)


def test_every_operation_answers_and_knows_its_errors(http: httpx.Client) -> None:
    values = {"list": [], "map": {}, "string": "x", "integer": 1}
    for operation in MODEL.operation_names:
        shape = MODEL.operation_model(operation).input_shape
        request = {name: values[shape.members[name].type_name] for name in shape.required_members}
        if operation in {"CreateQueue", "ListQueues"}:
            request["QueueName"] = "no good"
        answer = call(http, operation, request)
        if operation == "ListQueues":
            assert answer.status_code == 200
            continue
        assert 400 <= answer.status_code < 500, (operation, answer.text)
        name = answer.json()["__type"].removeprefix("com.amazonaws.sqs#")
        known = {each.name for each in MODEL.operation_model(operation).error_shapes}
        assert name in known | COMMON_ERRORS, (operation, name)
        assert answer.headers["x-amzn-query-error"].endswith(";Sender")
        assert answer.json()["message"]


@pytest.mark.parametrize(
    ("target", "content"),
    [
        ("AmazonSQS.Nothing", "{}"),
        ("Nothing", "{}"),
        ("AmazonSQS.SendMessage", "{"),
        ("AmazonSQS.SendMessage", "[]"),
        ("AmazonSQS.SendMessage", "[" * 100_000),
        ("AmazonSQS.SendMessage", '{"QueueUrl": 1}'),
        ("AmazonSQS.SendMessage", "\xff"),
    ],
)
def test_malformed_requests_are_refused(http: httpx.Client, target: str, content: str) -> None:
    answer = http.post("/", content=content.encode("latin-1"), headers={"X-Amz-Target": target})
    assert answer.status_code == 400
    assert answer.json()["message"]


def test_the_query_protocol_does_the_same(http: httpx.Client) -> None:
    def ask(operation: str, path: str = "/", **parameters: str) -> ET.Element:
        answer = http.post(path, data={"Action": operation, "Version": "2012-11-05", **parameters})
        assert answer.headers["content-type"].startswith("text/xml")
        assert answer.status_code == 200, answer.text
        root = ET.fromstring(answer.content)
        assert root.tag == f"{NAMESPACE}{operation}Response"
        return root

    def text(root: ET.Element, name: str) -> str:
        found = root.find(f".//{NAMESPACE}{name}")
        assert found is not None
        return found.text or ""

    created = ask(
        "CreateQueue",
        QueueName=queue_name(),
        **{"Attribute.1.Name": "VisibilityTimeout", "Attribute.1.Value": "31"},
    )
    path = httpx.URL(text(created, "QueueUrl")).path
    sent = ask(
        "SendMessage",
        path,
        MessageBody="<a & b>",
        **{
            "MessageAttribute.1.Name": "n",
            "MessageAttribute.1.Value.DataType": "Number",
            "MessageAttribute.1.Value.StringValue": "7",
        },
    )
    received = ask(
        "ReceiveMessage", path, WaitTimeSeconds="20", **{"MessageAttributeName.1": "All"}
    )
    assert text(received, "Body") == "<a & b>"
    assert text(received, "MessageId") == text(sent, "MessageId")
    assert text(received, "MD5OfMessageAttributes") == text(sent, "MD5OfMessageAttributes")
    ask("DeleteMessage", path, ReceiptHandle=text(received, "ReceiptHandle"))
    attributes = ask("GetQueueAttributes", path, **{"AttributeName.1": "VisibilityTimeout"})
    assert text(attributes, "Value") == "31"
    ask("DeleteQueue", path)

    missing = http.post(path, data={"Action": "SendMessage", "MessageBody": "x"})
    assert missing.status_code == 400
    error = ET.fromstring(missing.content)
    assert text(error, "Code") == "AWS.SimpleQueueService.NonExistentQueue"
    odd = http.post("/", data={"Action": "Nothing"})
    assert text(ET.fromstring(odd.content), "Code") == "InvalidAction"
