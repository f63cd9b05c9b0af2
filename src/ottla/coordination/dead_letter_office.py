"""Sends the dead letters of the share-partitions on this broker, a batch at a time.

The queue is the records that the share-partition has in state Archiving; nothing else is stored. A
letter leaves that state once it is written, so one may be written twice but none is lost. On
failure, each share-partition retries on its own, with exponential back-off and jitter.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field
from random import Random
from typing import TYPE_CHECKING, Final

from ottla.coordination.dead_letter_reports import DeadLetterReports, Waiting
from ottla.coordination.dead_letter_routes import DeadLetterRoutes
from ottla.groups.share.config import ShareConfig
from ottla.groups.share.delivery import DeadLetter
from ottla.groups.share.rules import dead_letter_topic
from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.runtime.backoff import Backoff
from ottla.runtime.clock import Clock
from ottla.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from ottla.coordination.share_partitions import LedSharePartition

BACKOFF_S: Final = 0.25
BACKOFF_MAX_S: Final = 30.0


@dataclass(slots=True, eq=False)
class DeadLetterOffice:
    routes: DeadLetterRoutes
    config: Callable[[str], ShareConfig]  # A group's effective configuration.
    clock: Clock
    random: Random
    supervisor: Supervisor
    _reports: DeadLetterReports = field(init=False, default_factory=DeadLetterReports)
    _sending: "set[LedSharePartition]" = field(init=False, default_factory=set)

    def notice(self, sender: "LedSharePartition") -> None:
        """The sender has letters."""
        if sender not in self._sending and not self.supervisor.stopped:
            self._sending.add(sender)
            self.supervisor.start("dead letters", self._send_all(sender))

    async def _send_all(self, sender: "LedSharePartition") -> None:
        """Nothing can arrive between the last check for letters and the end of the task."""
        backoff = Backoff(BACKOFF_S, BACKOFF_MAX_S, self.random)
        try:
            while letters := sender.dead_letters():
                try:
                    await self._send_some(sender, letters)
                    backoff.reset()
                except ApiError as error:
                    self._report(sender, error)
                    await asyncio.sleep(backoff.next_s())
        finally:
            self._sending.discard(sender)
            self._reports.forget(sender)

    async def _send_some(self, sender: "LedSharePartition", letters: Sequence[DeadLetter]) -> None:
        """Letters that are no longer wanted are dropped."""
        group_id, config = sender.key.group_id, self.config(sender.key.group_id)
        topic = dead_letter_topic(config, sender.partition.log.topic_partition.topic)
        if topic:
            copy = config.dead_letter_copy_record
            letters = await self.routes.write(
                letters, sender.partition, group_id, topic, copy_record=copy
            )
            self._reports.on_written(sender, group_id, topic, self.clock.monotonic_ms())
        sender.on_dead_letters_written(letters)

    def _report(self, sender: "LedSharePartition", error: ApiError) -> None:
        """Does nothing if the letters were given up meanwhile."""
        letters = sender.dead_letters()
        if not letters:
            return
        group_id, source = sender.key.group_id, sender.partition.log.topic_partition
        waiting = Waiting(
            group_id,
            source,
            dead_letter_topic(self.config(group_id), source.topic),
            sum(letter.last_offset - letter.first_offset + 1 for letter in letters),
            sender.waits_for_dead_letters,
        )
        self._reports.on_failed(sender, waiting, error, self.clock.monotonic_ms())
