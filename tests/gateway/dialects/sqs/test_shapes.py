"""The operations' inputs, compared with botocore's model."""

from typing import Any

import botocore.session
import pytest

from ottla.gateway.dialects.sqs.errors import SqsError
from ottla.gateway.dialects.sqs.shapes import (
    INPUTS,
    Integer,
    ListOf,
    MapOf,
    Shape,
    Structure,
    Text,
    validate,
)

MODEL = botocore.session.get_session().get_service_model("sqs")


def kind_of(shape: Shape) -> Any:
    match shape:
        case Text():
            return "text"
        case Integer():
            return "integer"
        case ListOf(member):
            return ["list", kind_of(member)]
        case MapOf(value):
            return ["map", kind_of(value)]
        case Structure(members):
            return {name: kind_of(member) for name, member in members.items()}


def kind_in_model(shape: Any) -> Any:
    match shape.type_name:
        case "string" | "blob":
            return "text"
        case "integer" | "long":
            return "integer"
        case "list":
            return ["list", kind_in_model(shape.member)]
        case "map":
            return ["map", kind_in_model(shape.value)]
        case "structure":
            return {name: kind_in_model(member) for name, member in shape.members.items()}
    raise AssertionError(shape.type_name)


def test_every_operation_of_the_model_has_its_input() -> None:
    assert set(INPUTS) == set(MODEL.operation_names)


@pytest.mark.parametrize("operation", MODEL.operation_names)
def test_inputs_are_those_of_the_model(operation: str) -> None:
    shape = MODEL.operation_model(operation).input_shape
    assert kind_of(INPUTS[operation]) == kind_in_model(shape)
    assert INPUTS[operation].required == set(shape.required_members)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ({"QueueUrl": "q"}, "MissingParameterException"),
        ({"QueueUrl": "q", "MessageBody": 1}, "SerializationException"),
        ({"QueueUrl": "q", "MessageBody": "b", "DelaySeconds": "1"}, "SerializationException"),
        ({"QueueUrl": "q", "MessageBody": "b", "DelaySeconds": True}, "SerializationException"),
        ({"QueueUrl": "q", "MessageBody": "b", "MessageAttributes": []}, "SerializationException"),
        ([], "SerializationException"),
    ],
)
def test_a_request_of_another_shape_is_refused(request_: Any, name: str) -> None:
    with pytest.raises(SqsError) as raised:
        validate(request_, INPUTS["SendMessage"])
    assert raised.value.name == name
