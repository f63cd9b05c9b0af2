"""Limits how fast followers that are not in sync may copy partitions (KIP-73).

A broker has one rate for what it sends as a leader and one for what it receives as a follower. Both
count only the replicas that their topics list as throttled, and an in-sync replica is never
throttled: its producers would wait for it.

A quota is a token bucket that holds one second's worth. Anything larger than the rest of the bucket
passes in full and is paid back by waiting.
"""

from collections.abc import Sequence
from typing import Final

from ottla.replication.partition import Partition
from ottla.runtime.clock import Clock
from ottla.storage.config import LONG_MAX

EVERY_REPLICA: Final = "*"
_BUCKET_MS: Final = 1000.0


def is_listed(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's list of throttled replicas contains this one."""
    return bool(replicas) and (f"{partition}:{broker_id}" in replicas or EVERY_REPLICA in replicas)


class ReplicationQuota:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rate = float(LONG_MAX)  # Bytes per second.
        self._tokens = self._rate
        self._filled_at_ms = clock.monotonic_ms()

    def set_rate(self, bytes_per_second: int) -> None:
        if bytes_per_second != self._rate:
            self._fill()
            self._rate = float(max(bytes_per_second, 1))
            self._tokens = min(self._tokens, self._rate)

    @property
    def wait_ms(self) -> float:
        """How long until something may be copied; 0 means now."""
        self._fill()
        return 0.0 if self._tokens > 0 else (1 - self._tokens) / self._rate * 1000

    def spend(self, size: int) -> None:
        self._fill()
        self._tokens -= size

    def _fill(self) -> None:
        now_ms = self._clock.monotonic_ms()
        passed_ms = now_ms - self._filled_at_ms
        self._filled_at_ms = now_ms
        full = self._rate * _BUCKET_MS / 1000
        self._tokens = min(full, self._tokens + passed_ms * self._rate / 1000)


class ReplicationThrottle:
    """The quotas of a broker, and what counts against them."""

    def __init__(self, broker_id: int, clock: Clock) -> None:
        self.leader = ReplicationQuota(clock)
        self.follower = ReplicationQuota(clock)
        self.directory_moves = ReplicationQuota(clock)
        self._broker_id = broker_id

    def counts_as_leader(self, partition: Partition, follower_id: int) -> bool:
        """Whether the quota covers what this follower gets: it is listed and not in sync."""
        log = partition.log
        listed = log.config.leader_replication_throttled_replicas
        return (
            bool(listed)
            and is_listed(listed, log.topic_partition.partition, self._broker_id)
            and partition.followers is not None
            and follower_id not in partition.followers.isr
        )

    def counts_as_follower(self, partition: Partition) -> bool:
        log = partition.log
        listed = log.config.follower_replication_throttled_replicas
        return is_listed(listed, log.topic_partition.partition, self._broker_id)
