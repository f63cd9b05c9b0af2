"""Memory does not grow while no node starts or stops, however many attempts fail.

It counts objects of Ottla's own types, and what a failed attempt may leave behind (its exception,
tracebacks, frames, tasks, timers). The cycle collector is off during a run, so a leaked cycle
counts like anything else that stays. Whenever a node starts or stops, the count starts over after
a warm-up.
"""

import asyncio
import gc
import sys
import types
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.testing.simulator.checkers.checker import Checker
from ottla.testing.simulator.log_view import LogView
from ottla.testing.simulator.violation import Violation

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode

WARM_UP_S: Final = 60.0
INTERVAL_S: Final = 30.0
OBJECTS_MAX: Final = 2_500  # More than after the warm-up, of a node.
BYTES_MAX: Final = 5 << 19
TYPES_SHOWN: Final = 6

_PRODUCT: Final = "ottla."
_NOT_PRODUCT: Final = ("ottla.testing.", "ottla.storage.faulty_filesystem")
_REMAINS: Final = (
    BaseException,
    types.TracebackType,
    types.FrameType,
    types.CoroutineType,
    asyncio.Future,
    asyncio.Handle,
)


@dataclass(slots=True)
class Held:
    """Held by all nodes together."""

    counts: Counter[str] = field(default_factory=Counter)  # By type.
    size: int = 0  # Of these objects, and of the buffers that they refer to.


@dataclass(slots=True)
class Memory(Checker):
    lives: frozenset[tuple[int, int]] = frozenset()  # Nodes that serve, and which life it is.
    before: Held | None = None  # After the warm-up.
    next_at: float = 0.0
    looked_at: float = -1.0
    seen: set[tuple[int, int]] = field(default_factory=set)  # In this round of looks.

    def look(self, node: "SimulatedNode", _: Sequence[LogView]) -> None:
        now = node.host.scheduler.now
        if now != self.looked_at:
            self._end_round(now)
        self.seen.add((node.node_id, node.life))

    def _end_round(self, now: float) -> None:
        lives, self.seen, self.looked_at = frozenset(self.seen), set(), now
        if lives != self.lives:
            self.lives, self.before, self.next_at = lives, None, now + WARM_UP_S
        elif lives and now >= self.next_at:
            self.next_at = now + INTERVAL_S
            self._compare(held_now())

    def _compare(self, held: Held) -> None:
        if self.before is None:
            self.before = held
            return
        nodes_count = len(self.lives)
        objects = (held.counts.total() - self.before.counts.total()) // nodes_count
        size = (held.size - self.before.size) // nodes_count
        if objects > OBJECTS_MAX or size > BYTES_MAX:
            grown = (held.counts - self.before.counts).most_common(TYPES_SHOWN)
            raise Violation(
                f"each of {nodes_count} nodes holds {objects} objects and {size} bytes more than "
                f"after its warm-up: {', '.join(f'{count} {name}' for name, count in grown)}"
            )


def held_now() -> Held:
    held = Held()
    counted: dict[type, bool] = {}
    for each in gc.get_objects():
        kind = type(each)
        is_counted = counted.get(kind)
        if is_counted is None:
            is_counted = counted[kind] = _is_counted(kind)
        if is_counted:
            held.counts[kind.__qualname__] += 1
            held.size += sys.getsizeof(each)
            for part in gc.get_referents(each):
                if type(part) in {bytes, bytearray}:
                    held.size += sys.getsizeof(part)
    return held


def _is_counted(kind: type) -> bool:
    module = kind.__module__
    is_product = module.startswith(_PRODUCT) and not module.startswith(_NOT_PRODUCT)
    return is_product or issubclass(kind, _REMAINS)
