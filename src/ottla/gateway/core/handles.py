"""Delivery handles: what a consumer shows to settle a delivery, at any gateway of the cluster.

A handle names the delivery and is signed, so a gateway keeps nothing about it. Whether the lock
still holds is for the broker to say: a handle stays the same when its lock is extended.

    version, expiry (s), topic id, partition, offset, delivery count,
    member id, group, topic (each with its size), signature
"""

import base64
import binascii
import hmac
import struct
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

VERSION = 1
SECRET_BYTES = 32
SIGNATURE_BYTES = 16
HANDLE_CHARACTERS_MAX = 2048

_FIXED = struct.Struct(">BI16siqhBBB")


class InvalidHandle(ValueError):
    """Not a handle that this cluster gave out, or one that is too old."""


class Handle(NamedTuple):
    topic: str
    topic_id: UUID
    partition: int
    offset: int
    group: str
    delivery_count: int
    member_id: str
    expires_s: int  # After this no lock of the delivery can hold.


class Signer:
    """Signs with the first secret; what any of them signed is good."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets = tuple(secrets)
        if not self._secrets or any(len(secret) < SIGNATURE_BYTES for secret in self._secrets):
            raise ValueError(f"a secret has at least {SIGNATURE_BYTES} bytes")

    def sign(self, content: bytes) -> bytes:
        return hmac.digest(self._secrets[0], content, "sha256")[:SIGNATURE_BYTES]

    def verify(self, content: bytes, signature: bytes) -> bool:
        return any(
            hmac.compare_digest(hmac.digest(secret, content, "sha256")[:SIGNATURE_BYTES], signature)
            for secret in self._secrets
        )

    def seal(self, handle: Handle) -> str:
        """The handle as consumers see it: url-safe text."""
        member_id, group, topic = (
            handle.member_id.encode(),
            handle.group.encode(),
            handle.topic.encode(),
        )
        fixed = _FIXED.pack(
            VERSION,
            handle.expires_s,
            handle.topic_id.bytes,
            handle.partition,
            handle.offset,
            handle.delivery_count,
            len(member_id),
            len(group),
            len(topic),
        )
        content = b"".join((fixed, member_id, group, topic))
        sealed = base64.urlsafe_b64encode(content + self.sign(content))
        return sealed.rstrip(b"=").decode("ascii")

    def open(self, text: str, now_s: float) -> Handle:
        """InvalidHandle for what no gateway of this cluster signed."""
        sealed = _decode(text)
        content, signature = sealed[:-SIGNATURE_BYTES], sealed[-SIGNATURE_BYTES:]
        if len(content) < _FIXED.size or not self.verify(content, signature):
            raise InvalidHandle("not a delivery handle of this cluster")
        version, expires_s, topic_id, partition, offset, count, *sizes = _FIXED.unpack_from(content)
        if version != VERSION:
            raise InvalidHandle(f"a delivery handle of version {version}")
        if expires_s < now_s:
            raise InvalidHandle("the delivery handle is too old; receive the record again")
        names = content[_FIXED.size :]
        member_end = sizes[0]
        group_end = member_end + sizes[1]
        return Handle(
            topic=names[group_end:].decode(),
            topic_id=UUID(bytes=topic_id),
            partition=partition,
            offset=offset,
            group=names[member_end:group_end].decode(),
            delivery_count=count,
            member_id=names[:member_end].decode(),
            expires_s=expires_s,
        )


def _decode(text: str) -> bytes:
    if len(text) > HANDLE_CHARACTERS_MAX:
        raise InvalidHandle("not a delivery handle of this cluster")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidHandle("not a delivery handle of this cluster") from None
