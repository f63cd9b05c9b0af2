"""Limits the partitions that clients create and delete: controller_mutation_rate (KIP-599).

The usage is known only to this controller, and forgotten with it, as in Kafka: it is not part of
the metadata, and the next controller begins with full buckets.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.controller.config import (
    CONTROLLER_QUOTA_WINDOW_NUM,
    CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS,
)
from ottla.controller.image import MetadataImage
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.principal import Principal
from ottla.security.quotas import CONTROLLER_MUTATION_RATE, QuotaKey
from ottla.security.rates import TokenBucket, Windows

BUCKETS_UNSWEPT_MAX: Final = 1_000  # At more than twice the last count, full ones are dropped.


class Caller(NamedTuple):
    """The client that sent a request."""

    principal: Principal
    host: str  # Its address.
    client_id: str
    # It understands THROTTLING_QUOTA_EXCEEDED; other clients are throttled afterwards.
    is_strict: bool = False
    by_token: bool = False  # It logged in with a delegation token.
    is_forwarded: bool = False  # Another node forwarded the request, so it is not forwarded again.


class MutationQuota:
    """The quota of one request. `take` counts; `throttle_ms` is how long its client has to wait."""

    def __init__(self) -> None:
        self.throttle_ms = 0

    def take(self, count: int) -> None:
        del count


class _Limited(MutationQuota):
    def __init__(self, bucket: TokenBucket, rate: float, now_ms: int, *, is_strict: bool) -> None:
        super().__init__()
        self._bucket = bucket
        self._rate = rate
        self._now_ms = now_ms
        self._is_strict = is_strict

    def take(self, count: int) -> None:
        bucket, rate, now_ms = self._bucket, self._rate, self._now_ms
        if self._is_strict:
            self.throttle_ms = bucket.debt_ms(rate, now_ms)
            if self.throttle_ms:
                raise ApiError(
                    ErrorCode.throttling_quota_exceeded,
                    f"the quota controller_mutation_rate is exceeded for {self.throttle_ms} ms",
                )
        bucket.take(count, rate, now_ms)
        if not self._is_strict:
            self.throttle_ms = bucket.debt_ms(rate, now_ms)


class MutationQuotas:
    def __init__(self, image: MetadataImage, static: ConfigValues) -> None:
        self._image = image
        self._windows = Windows(
            static[CONTROLLER_QUOTA_WINDOW_NUM],
            static[CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS] * 1000,
        )
        self._buckets: dict[tuple[str | None, str | None], TokenBucket] = {}
        self._buckets_max = BUCKETS_UNSWEPT_MAX

    def of(self, caller: Caller | None, now_ms: int) -> MutationQuota:
        """Requests of nodes themselves are not limited."""
        allowance = None
        if caller is not None:
            rates = QuotaKey(self._image.client_quotas, CONTROLLER_MUTATION_RATE)
            allowance = rates.of_client(caller.principal.name, caller.client_id)
        if caller is None or allowance is None:
            return MutationQuota()
        key = (allowance.user, allowance.client_id)
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= self._buckets_max:
                self._sweep(lambda other: other.is_full(allowance.bound, now_ms))
            bucket = self._buckets[key] = TokenBucket(self._windows)
        return _Limited(bucket, allowance.bound, now_ms, is_strict=caller.is_strict)

    def _sweep(self, is_full: Callable[[TokenBucket], bool]) -> None:
        self._buckets = {
            key: bucket for key, bucket in self._buckets.items() if not is_full(bucket)
        }
        self._buckets_max = 2 * len(self._buckets) + BUCKETS_UNSWEPT_MAX
