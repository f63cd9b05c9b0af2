"""Whether brokers honour the delivery times of a topic's records.

They do so only if the topic's config enables it, and brokers other than Ottla's never do. A record
whose delay would be ignored is refused.
"""

import time
from typing import Final

from ottla.client.async_wire.configs import ResourceType
from ottla.client.wire.errors import BrokerError
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.errors import NotDelayed
from ottla.protocol.errors import ErrorCode

CONFIG: Final = "delivery.delay.enable"
_AGE_S_MAX: Final = 10.0
_REMEMBERED_MAX: Final = 10_000


class Delays:
    def __init__(self, administration: Administration) -> None:
        self._administration = administration
        self._enabled: dict[str, float] = {}  # Topic -> when it was last seen enabled.

    async def validate(self, topic: str) -> None:
        """Raises NotDelayed; UNSUPPORTED_VERSION for brokers without the feature."""
        if time.monotonic() - self._enabled.get(topic, -_AGE_S_MAX) < _AGE_S_MAX:
            return
        found = await self._administration.configs(ResourceType.TOPIC, topic, [CONFIG])
        if not found:
            raise BrokerError(ErrorCode.unsupported_version, "delivery at a later time")
        if found[0].value != "true":
            raise NotDelayed(f"topic {topic} does not deliver records later")
        if len(self._enabled) >= _REMEMBERED_MAX:
            self._enabled.clear()
        self._enabled[topic] = time.monotonic()
