"""Message and request ids."""

import random
import uuid
from typing import Final

_IDS: Final = uuid.UUID("7c0f7d3c-5a8e-4c39-8f7a-2f1d1a3a6e55")
_RANDOM_BITS: Final = ~(0xF << 76 | 0x3 << 62)
_VERSION_4: Final = 0x4 << 76 | 0x2 << 62


def new_id() -> str:
    """A random UUID, at a third of the cost of `uuid.uuid4`; not for secrets."""
    text = f"{random.getrandbits(128) & _RANDOM_BITS | _VERSION_4:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def id_of_record(topic: str, partition: int, offset: int) -> str:
    """For messages without another id: in FIFO queues, or written by a Kafka producer."""
    return str(uuid.uuid5(_IDS, f"{topic}-{partition}@{offset}"))
