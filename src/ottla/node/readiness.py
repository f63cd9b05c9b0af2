"""Whether this node is alive and ready, for whatever starts, restarts and monitors it.

    alive   the event loop turns; a restart helps one that is not
    ready   the node is registered, the controller answers its heartbeats and has unfenced it, and
            all its replicas are in sync, so that another node may be stopped now

Both are queried from threads. A busy machine is slow, so the loop gets time to answer.
"""

import asyncio
import enum
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from ottla.controller.image import MetadataImage

_PATIENCE_S: Final = 10.0


class Phase(enum.Enum):
    STARTING = "the node is starting"
    SERVING = "the node is serving"
    STOPPING = "the node is stopping"


class Readiness:
    def __init__(self, node_id: int, image: MetadataImage, loop: asyncio.AbstractEventLoop) -> None:
        self.phase = Phase.STARTING
        self.is_in_touch: Callable[[], bool] = bool  # Called on the loop.
        self._node_id = node_id
        self._image = image
        self._loop = loop

    def why_not_alive(self) -> str | None:
        """None if it is."""
        return None if self._ask_loop(bool) is not None else "the event loop is stuck"

    def why_not_ready(self) -> str | None:
        """None if it is."""
        if self.phase is not Phase.SERVING:
            return str(self.phase.value)
        in_touch = self._ask_loop(self.is_in_touch)
        if in_touch is None:
            return "the event loop is stuck"
        if not in_touch:
            return "the controller does not answer heartbeats"
        broker = self._image.brokers.get(self._node_id)
        if broker is None:
            return "the node is not registered"
        if broker.fenced:
            return "the node is fenced"
        behind = self._replicas_behind()
        return f"{behind} replicas are not in sync" if behind else None

    def _replicas_behind(self) -> int:
        while True:
            try:
                return sum(
                    self._node_id in state.replicas and self._node_id not in state.isr
                    for topic in self._image.topics.values()
                    for state in topic.partitions.values()
                )
            except RuntimeError:  # The metadata has changed meanwhile.
                continue

    def _ask_loop(self, question: Callable[[], bool]) -> bool | None:
        """None without an answer."""
        answer: Future[bool] = Future()
        try:
            self._loop.call_soon_threadsafe(lambda: answer.set_result(question()))
            return answer.result(_PATIENCE_S)
        except (TimeoutError, RuntimeError):  # It is closed.
            return None
