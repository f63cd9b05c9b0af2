"""Message attributes: validation, their MD5, and their record headers.

An attribute is a record header of the same name, so that Kafka consumers see it. Its data type is
String unless the header `sqs-types` says otherwise. Headers written by Kafka producers are returned
as String, or as Binary if they are not text.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.gateway.dialects.sqs.errors import invalid_value

Headers = tuple[tuple[str, bytes | None], ...]
Attributes = Mapping[str, Mapping[str, Any]]

TYPES_HEADER: Final = "sqs-types"
TRACE_HEADER: Final = "AWSTraceHeader"
_RESERVED: Final = ("sqs-", "ottla-", "__dlq.")
_COUNT_MAX: Final = 10
_NAME = re.compile(r"(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_TYPE = re.compile(r"(String|Number|Binary)(\..{1,256})?")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_NOT_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Valid ASCII characters; searching for others takes a tenth of the time of the full expression.
_ASCII_TEXT: Final = bytes([*b"\t\n\r", *range(0x20, 0x80)])


def validate_message_attributes(attributes: Attributes) -> None:
    if len(attributes) > _COUNT_MAX:
        raise invalid_value(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum"
            f" [{_COUNT_MAX}]."
        )
    for name, attribute in attributes.items():
        _validate_name(name)
        _validate_value(name, attribute)


def _validate_name(name: str) -> None:
    lowered = name.lower()
    if not _NAME.fullmatch(name) or lowered.startswith(("aws.", "amazon.", *_RESERVED)):
        raise invalid_value(f"The message attribute name '{name}' is invalid.")


def _validate_value(name: str, attribute: Mapping[str, Any]) -> None:
    data_type = attribute.get("DataType")
    matched = _TYPE.fullmatch(data_type) if isinstance(data_type, str) else None
    if matched is None:
        raise invalid_value(
            f"The message attribute '{name}' has an invalid message attribute type, the set of"
            " supported type prefixes is Binary, Number, and String."
        )
    if matched[1] == "Binary":
        if not _blob(name, attribute.get("BinaryValue")):
            raise _no_value(name, data_type)
        return
    text = attribute.get("StringValue")
    if not isinstance(text, str) or not text:
        raise _no_value(name, data_type)
    if matched[1] == "Number" and not _NUMBER.fullmatch(text):
        raise invalid_value(f"Can't cast the value of message attribute '{name}' to a number.")
    if bytes_of(text) is None:
        raise invalid_value(f"The message attribute '{name}' contains an invalid character.")


def _no_value(name: str, data_type: Any) -> Exception:
    return invalid_value(
        f"Message (user) attribute '{name}' must contain a non-empty value of type '{data_type}'."
    )


def _blob(name: str, value: Any) -> bytes:
    if value is None:
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise invalid_value(f"The message attribute '{name}' is not valid base64.") from None


def value_bytes(attribute: Mapping[str, Any]) -> bytes:
    if attribute["DataType"].startswith("Binary"):
        return base64.b64decode(attribute["BinaryValue"])
    return str(attribute["StringValue"]).encode()


def attributes_size(attributes: Attributes) -> int:
    return sum(
        len(name.encode()) + len(attribute["DataType"].encode()) + len(value_bytes(attribute))
        for name, attribute in attributes.items()
    )


def attributes_md5(attributes: Attributes) -> str:
    """As SDKs compute it: length and bytes of name, type and value, sorted by name."""
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes):
        attribute = attributes[name]
        data_type = attribute["DataType"]
        for part in (name.encode(), data_type.encode()):
            digest.update(len(part).to_bytes(4, "big") + part)
        value = value_bytes(attribute)
        kind = b"\x02" if data_type.startswith("Binary") else b"\x01"
        digest.update(kind + len(value).to_bytes(4, "big") + value)
    return digest.hexdigest()


def body_md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def to_headers(attributes: Attributes) -> list[tuple[str, bytes | None]]:
    if not attributes:
        return []
    headers: list[tuple[str, bytes | None]] = [
        (name, value_bytes(attribute)) for name, attribute in attributes.items()
    ]
    types = {
        name: attribute["DataType"]
        for name, attribute in attributes.items()
        if attribute["DataType"] != "String"
    }
    if types:
        headers.append((TYPES_HEADER, json.dumps(types).encode()))
    return headers


def from_headers(headers: Headers) -> dict[str, dict[str, str]]:
    """Skips headers that cannot be attributes (reserved, empty, or with an invalid name)."""
    types = _types(headers)
    found: dict[str, dict[str, str]] = {}
    for name, value in headers:
        if value and not name.startswith(_RESERVED) and _NAME.fullmatch(name):
            found[name] = _attribute(value, types.get(name))
    return found


def _types(headers: Headers) -> dict[str, str]:
    for name, value in headers:
        if name == TYPES_HEADER and value:
            try:
                types = json.loads(value)
            except ValueError:
                return {}
            return types if isinstance(types, dict) else {}
    return {}


def _attribute(value: bytes, data_type: str | None) -> dict[str, str]:
    if data_type is None or not data_type.startswith("Binary"):
        text = text_of(value)
        if text is not None:
            return {"StringValue": text, "DataType": data_type or "String"}
        data_type = "Binary"
    return {"BinaryValue": base64.b64encode(value).decode(), "DataType": data_type}


def text_of(value: bytes) -> str | None:
    """None if it is not text that SQS can carry."""
    if value.isascii():
        return None if value.translate(None, _ASCII_TEXT) else value.decode("ascii")
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if _NOT_TEXT.search(text) else text


def bytes_of(text: str) -> bytes | None:
    """None if SQS cannot carry the text."""
    if text.isascii():
        value = text.encode("ascii")
        return None if value.translate(None, _ASCII_TEXT) else value
    return None if _NOT_TEXT.search(text) else text.encode()


def select(found: Attributes, wanted: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """What ReceiveMessage asks for: names, `All`, `.*`, or a prefix such as `bar.*`."""
    names = list(wanted)
    if "All" in names or ".*" in names:
        return dict(found)
    exact = set(names)
    prefixes = tuple(name[:-2] for name in names if name.endswith(".*"))
    return {
        name: attribute
        for name, attribute in found.items()
        if name in exact or (prefixes and name.startswith(prefixes))
    }
