"""The SQS query protocol: form parameters in, XML out.

A list is `Name.1`, `Name.2`; a structure `Name.Member`; a map `Name.1.Name`, `Name.1.Value`.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from ottla.gateway.dialects.sqs.errors import SqsError, invalid_value
from ottla.gateway.dialects.sqs.shapes import (
    INPUTS,
    Integer,
    ListOf,
    MapOf,
    Shape,
    Structure,
    Text,
)

_NAMESPACE: Final = "http://queue.amazonaws.com/doc/2012-11-05/"
_PARAMETERS_MAX: Final = 2_000

# List and map members of answers, and the element name of their entries.
_LISTS: Final = {
    "Failed": "BatchResultErrorEntry",
    "Messages": "Message",
    "QueueUrls": "QueueUrl",
    "Results": "ListMessageMoveTasksResultEntry",
    "queueUrls": "QueueUrl",
}
_MAPS: Final = {
    "Attributes": ("Attribute", "Name"),
    "MessageAttributes": ("MessageAttribute", "Name"),
    "Tags": ("Tag", "Key"),
}


def parameters_of(body: bytes, query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            b"&".join(part for part in (query, body) if part).decode(),
            keep_blank_values=True,
            max_num_fields=_PARAMETERS_MAX,
        )
    except ValueError as error:
        raise SqsError("MalformedInput", f"The form cannot be read: {error}.") from None
    return dict(pairs)


def parse(operation: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in parameters.items():
        _put(tree, name.split("."), value)
    return _structure(tree, INPUTS[operation])


def _put(tree: dict[str, Any], path: list[str], value: str) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise invalid_value(f"The parameter {'.'.join(path)} is both a value and a structure.")
    tree[path[-1]] = value


def _structure(tree: dict[str, Any], shape: Structure) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, member in shape.members.items():
        part = _part(tree, name, member)
        if part is not None:
            found[name] = _value(part, member, name)
    return found


def _part(tree: dict[str, Any], name: str, shape: Shape) -> Any:
    """A list or map is under its query name or its own, flattened or not."""
    if not isinstance(shape, ListOf | MapOf):
        return tree.get(name)
    for key in (shape.query_name, name):
        part = tree.get(key)
        if isinstance(part, dict):
            return part.get("member", part.get("entry", part))
    return None


def _value(part: Any, shape: Shape, name: str) -> Any:
    match shape:
        case Text():
            return part
        case Integer():
            return _integer(part, name)
        case ListOf(member):
            return [_value(item, member, name) for item in _numbered(part, name)]
        case MapOf(member, _, key_name):
            return {
                str(item.get(key_name, item.get("key", ""))): _value(
                    item.get("Value", item.get("value", "")), member, name
                )
                for item in _numbered(part, name)
                if isinstance(item, dict)
            }
        case Structure():
            return _structure(part, shape) if isinstance(part, dict) else part


def _integer(part: Any, name: str) -> int:
    try:
        return int(part)
    except (TypeError, ValueError):
        raise invalid_value(
            f"Value {part} for parameter {name} is invalid. Reason: Must be an integer."
        ) from None


def _numbered(part: Any, name: str) -> list[Any]:
    if not isinstance(part, dict) or not all(key.isdigit() for key in part):
        raise invalid_value(f"The members of {name} must be numbered from 1.")
    return [part[key] for key in sorted(part, key=int)]


def answer(operation: str, result: Mapping[str, Any] | None, request_id: str) -> bytes:
    inner = ""
    if result is not None:
        inner = f"<{operation}Result>{_members(operation, result)}</{operation}Result>"
    return (
        f'<?xml version="1.0"?><{operation}Response xmlns="{_NAMESPACE}">{inner}'
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
        f"</{operation}Response>"
    ).encode()


def error_answer(error: SqsError, request_id: str) -> bytes:
    kind = "Sender" if error.is_senders_fault else "Receiver"
    return (
        f'<?xml version="1.0"?><ErrorResponse xmlns="{_NAMESPACE}"><Error><Type>{kind}</Type>'
        f"<Code>{error.query_code}</Code><Message>{_text(error.message)}</Message><Detail/></Error>"
        f"<RequestId>{request_id}</RequestId></ErrorResponse>"
    ).encode()


def _members(operation: str, value: Mapping[str, Any]) -> str:
    return "".join(_member(operation, name, member) for name, member in value.items())


def _member(operation: str, name: str, value: Any) -> str:
    if isinstance(value, list):
        element = f"{operation}ResultEntry" if name == "Successful" else _LISTS[name]
        return "".join(_element(operation, element, item) for item in value)
    if isinstance(value, dict) and name in _MAPS:
        element, key_name = _MAPS[name]
        return "".join(
            f"<{element}><{key_name}>{_text(key)}</{key_name}>"
            f"{_element(operation, 'Value', item)}</{element}>"
            for key, item in value.items()
        )
    return _element(operation, name, value)


def _element(operation: str, name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"<{name}>{_members(operation, value)}</{name}>"
    if isinstance(value, bool):
        value = str(value).lower()
    return f"<{name}>{_text(str(value))}</{name}>"


def _text(value: str) -> str:
    """Escaped, because parsers read a carriage return as a line feed."""
    return escape(value, {"\r": "&#13;"})
