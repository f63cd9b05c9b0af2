"""The identity in an Envelope (KIP-590): the client's principal and address.

The principal has the layout of Kafka's default principal builder.
"""

import ipaddress
import struct
from typing import Any, Final

from kio.schema.default_principal_data.v0.data import DefaultPrincipalData

from ottla.controller.mutations import Caller
from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.reader import read_entity
from ottla.protocol.writer import write_entity
from ottla.security.principal import Principal

_VERSION: Final = struct.Struct(">h")


def envelope_fields(caller: Caller | None) -> dict[str, Any]:
    """None stands for the node itself, which forwards no client's request."""
    if caller is None:
        return {"request_principal": None, "client_host_address": b""}
    return {
        "request_principal": _principal_bytes(caller),
        "client_host_address": _address_bytes(caller.host),
        "client_id": caller.client_id,
        "is_strict": caller.is_strict,
    }


def forwarded_caller(envelope: Any) -> Caller | None:
    """ApiError if the principal or the address cannot be parsed."""
    if envelope.request_principal is None:
        return None
    data = _read_principal(bytes(envelope.request_principal))
    return Caller(
        Principal(data.type_, data.name),
        _read_address(bytes(envelope.client_host_address)),
        envelope.client_id,
        is_strict=envelope.is_strict,
        by_token=data.token_authenticated,
        is_forwarded=True,
    )


def _principal_bytes(caller: Caller) -> bytes:
    data = DefaultPrincipalData(
        type_=caller.principal.type,
        name=caller.principal.name,
        token_authenticated=caller.by_token,
    )
    buffer = bytearray(_VERSION.pack(data.__version__))
    write_entity(buffer, data)
    return bytes(buffer)


def _read_principal(data: bytes) -> DefaultPrincipalData:
    try:
        (version,) = _VERSION.unpack_from(data)
        if version != DefaultPrincipalData.__version__:
            raise ProtocolError(f"version {version} of a principal is not known")
        principal, end = read_entity(DefaultPrincipalData, data, _VERSION.size)
        if end != len(data):
            raise ProtocolError("bytes follow the principal")
    except (ProtocolError, struct.error) as error:
        message = f"the principal of a forwarded request cannot be read: {error}"
        raise ApiError(ErrorCode.principal_deserialization_failure, message) from None
    return principal


def _address_bytes(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return b""  # A host without an address, as in the simulator.


def _read_address(data: bytes) -> str:
    if not data:
        return ""
    try:
        return str(ipaddress.ip_address(data))
    except ValueError:
        message = "the address of a forwarded request is of neither IPv4 nor IPv6"
        raise ApiError(ErrorCode.invalid_request, message) from None
