"""Clients for any cluster that speaks the Kafka protocol; independent of the server.

`Producer`, `Consumer`, `ShareConsumer` and `Admin` are a small, typed facade over confluent-kafka;
`ottla.client.aio` has the same for asyncio. Each is imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.config import (
        AckMode,
        ClientConfig,
        CompressionType,
        ConsumerConfig,
        GroupProtocol,
        IsolationLevel,
        OffsetResetPolicy,
        ProducerConfig,
        ShareConsumerConfig,
        WhenFull,
    )
    from ottla.client.consumer import Consumer
    from ottla.client.errors import BufferFull, NotFlushed, NotStarted
    from ottla.client.messages import Message, RecordMetadata
    from ottla.client.partitioners import Partition, key_modulo, round_robin
    from ottla.client.producer import Producer
    from ottla.client.share_consumer import ShareConsumer, ShareMessage
    from ottla.protocol.topics import TopicPartition

_MODULES = {
    "ottla.client.admin": ("Admin",),
    "ottla.client.config": (
        "AckMode",
        "ClientConfig",
        "CompressionType",
        "ConsumerConfig",
        "GroupProtocol",
        "IsolationLevel",
        "OffsetResetPolicy",
        "ProducerConfig",
        "ShareConsumerConfig",
        "WhenFull",
    ),
    "ottla.client.consumer": ("Consumer",),
    "ottla.client.errors": ("BufferFull", "NotFlushed", "NotStarted"),
    "ottla.client.messages": ("Message", "RecordMetadata"),
    "ottla.client.partitioners": ("Partition", "key_modulo", "round_robin"),
    "ottla.client.producer": ("Producer",),
    "ottla.client.share_consumer": ("ShareConsumer", "ShareMessage"),
    "ottla.protocol.topics": ("TopicPartition",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AckMode",
    "Admin",
    "BufferFull",
    "ClientConfig",
    "CompressionType",
    "Consumer",
    "ConsumerConfig",
    "GroupProtocol",
    "IsolationLevel",
    "Message",
    "NotFlushed",
    "NotStarted",
    "OffsetResetPolicy",
    "Partition",
    "Producer",
    "ProducerConfig",
    "RecordMetadata",
    "ShareConsumer",
    "ShareConsumerConfig",
    "ShareMessage",
    "TopicPartition",
    "WhenFull",
    "key_modulo",
    "round_robin",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)
