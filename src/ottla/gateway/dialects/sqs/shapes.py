"""Inputs of the operations: names and types of parameters, and which are required."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.gateway.dialects.sqs.errors import SqsError, missing


@dataclass(frozen=True, slots=True)
class Text:
    pass


@dataclass(frozen=True, slots=True)
class Integer:
    pass


@dataclass(frozen=True, slots=True)
class ListOf:
    member: "Shape"
    query_name: str  # Prefix of a member in the query protocol: QueryName.1, QueryName.2


@dataclass(frozen=True, slots=True)
class MapOf:
    value: "Shape"
    query_name: str  # QueryName.1.Name and QueryName.1.Value
    key_name: str = "Name"


@dataclass(frozen=True, slots=True)
class Structure:
    members: Mapping[str, "Shape"]
    required: frozenset[str] = field(default_factory=frozenset)


Shape = Text | Integer | ListOf | MapOf | Structure

TEXT: Final = Text()
INTEGER: Final = Integer()
# Blobs are base64 text in both protocols.
_ATTRIBUTE_VALUE: Final = Structure(
    {
        "DataType": TEXT,
        "StringValue": TEXT,
        "BinaryValue": TEXT,
        "StringListValues": ListOf(TEXT, "StringListValue"),
        "BinaryListValues": ListOf(TEXT, "BinaryListValue"),
    }
)
_ATTRIBUTES: Final = MapOf(TEXT, "Attribute")
_TAGS: Final = MapOf(TEXT, "Tag", "Key")
_MESSAGE: Final[Mapping[str, Shape]] = {
    "MessageBody": TEXT,
    "DelaySeconds": INTEGER,
    "MessageAttributes": MapOf(_ATTRIBUTE_VALUE, "MessageAttribute"),
    "MessageSystemAttributes": MapOf(_ATTRIBUTE_VALUE, "MessageSystemAttribute"),
    "MessageDeduplicationId": TEXT,
    "MessageGroupId": TEXT,
}


def _of(required: str, **members: Shape) -> Structure:
    """`required` parameters are text unless `members` says otherwise."""
    names = required.split()
    return Structure({**dict.fromkeys(names, TEXT), **members}, frozenset(names))


def _entries(kind: str, required: str, **members: Shape) -> Structure:
    entries = ListOf(_of(required, **members), f"{kind}BatchRequestEntry")
    return _of("QueueUrl Entries", Entries=entries)


INPUTS: Final[Mapping[str, Structure]] = {
    "AddPermission": _of(
        "QueueUrl Label AWSAccountIds Actions",
        AWSAccountIds=ListOf(TEXT, "AWSAccountId"),
        Actions=ListOf(TEXT, "ActionName"),
    ),
    "CancelMessageMoveTask": _of("TaskHandle"),
    "ChangeMessageVisibility": _of(
        "QueueUrl ReceiptHandle VisibilityTimeout", VisibilityTimeout=INTEGER
    ),
    "ChangeMessageVisibilityBatch": _entries(
        "ChangeMessageVisibility", "Id ReceiptHandle", VisibilityTimeout=INTEGER
    ),
    "CreateQueue": _of("QueueName", Attributes=_ATTRIBUTES, tags=_TAGS),
    "DeleteMessage": _of("QueueUrl ReceiptHandle"),
    "DeleteMessageBatch": _entries("DeleteMessage", "Id ReceiptHandle"),
    "DeleteQueue": _of("QueueUrl"),
    "GetQueueAttributes": _of("QueueUrl", AttributeNames=ListOf(TEXT, "AttributeName")),
    "GetQueueUrl": _of("QueueName", QueueOwnerAWSAccountId=TEXT),
    "ListDeadLetterSourceQueues": _of("QueueUrl", NextToken=TEXT, MaxResults=INTEGER),
    "ListMessageMoveTasks": _of("SourceArn", MaxResults=INTEGER),
    "ListQueueTags": _of("QueueUrl"),
    "ListQueues": _of("", QueueNamePrefix=TEXT, NextToken=TEXT, MaxResults=INTEGER),
    "PurgeQueue": _of("QueueUrl"),
    "ReceiveMessage": _of(
        "QueueUrl",
        AttributeNames=ListOf(TEXT, "AttributeName"),
        MessageSystemAttributeNames=ListOf(TEXT, "MessageSystemAttributeName"),
        MessageAttributeNames=ListOf(TEXT, "MessageAttributeName"),
        MaxNumberOfMessages=INTEGER,
        VisibilityTimeout=INTEGER,
        WaitTimeSeconds=INTEGER,
        ReceiveRequestAttemptId=TEXT,
    ),
    "RemovePermission": _of("QueueUrl Label"),
    "SendMessage": _of("QueueUrl MessageBody", **_MESSAGE),
    "SendMessageBatch": _entries("SendMessage", "Id MessageBody", **_MESSAGE),
    "SetQueueAttributes": _of("QueueUrl Attributes", Attributes=_ATTRIBUTES),
    "StartMessageMoveTask": _of(
        "SourceArn", DestinationArn=TEXT, MaxNumberOfMessagesPerSecond=INTEGER
    ),
    "TagQueue": _of("QueueUrl Tags", Tags=_TAGS),
    "UntagQueue": _of("QueueUrl TagKeys", TagKeys=ListOf(TEXT, "TagKey")),
}


def validate(value: Any, shape: Shape, name: str = "") -> None:
    """Raises SqsError unless it has that shape; ignores what the shape does not name."""
    match shape:
        case Text():
            _expect(isinstance(value, str), name, "a string")
        case Integer():
            _expect(isinstance(value, int) and not isinstance(value, bool), name, "an integer")
        case ListOf(member):
            _expect(isinstance(value, list), name, "a list")
            for item in value:
                validate(item, member, name)
        case MapOf(member):
            _expect(isinstance(value, dict), name, "a map")
            for item in value.values():
                validate(item, member, name)
        case Structure():
            _expect(isinstance(value, dict), name, "a structure")
            _validate_members(value, shape)


def _validate_members(value: dict[str, Any], shape: Structure) -> None:
    for name, member in shape.members.items():
        found = value.get(name)
        if found is None:
            if name in shape.required:
                raise missing(name)
        elif member is not TEXT or type(found) is not str:  # True of most members.
            validate(found, member, name)


def _expect(holds: bool, name: str, kind: str) -> None:
    if not holds:
        raise SqsError("SerializationException", f"{name or 'The request'} must be {kind}.")
