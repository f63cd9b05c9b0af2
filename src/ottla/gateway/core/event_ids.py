"""A reader's position in a topic, as text: `0:17,2:4` is the next offset of each partition.

This is the id of a server-sent event, which a browser sends back as Last-Event-ID when it
reconnects. A partition that is not named is read from its beginning: it was added later.
"""

import re
from collections.abc import Mapping

LENGTH_MAX = 32 * 1024
_ID = re.compile(r"\d{1,10}:\d{1,19}(,\d{1,10}:\d{1,19})*", re.ASCII)


def format_event_id(positions: Mapping[int, int]) -> str:
    return ",".join(f"{partition}:{offset}" for partition, offset in positions.items())


def parse_event_id(text: str) -> dict[int, int]:
    """Raises ValueError for anything else."""
    if len(text) > LENGTH_MAX or not _ID.fullmatch(text):
        raise ValueError("a position in a topic reads 0:17,2:4: partition, colon, next offset")
    pairs = (item.split(":") for item in text.split(","))
    return {int(partition): int(offset) for partition, offset in pairs}
