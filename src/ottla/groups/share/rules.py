"""The share group configuration, applied to one of its topics."""

from typing import Final

from ottla.groups.share.acquisition import DeliveryRules
from ottla.groups.share.config import DEAD_LETTER_PREFIX, TOPIC_PLACEHOLDER, ShareConfig

ORDERED_MAX: Final = 100_000  # Parked records with known keys, some 200 bytes each.


def dead_letter_topic(config: ShareConfig, topic: str) -> str:
    """Empty if dead letters are not wanted; a dead letter that fails is not sent to yet another."""
    name = config.dead_letter_topic.replace(TOPIC_PLACEHOLDER, topic)
    return "" if name == topic or topic.startswith(DEAD_LETTER_PREFIX) else name


def delivery_rules(config: ShareConfig, topic: str) -> DeliveryRules:
    wanted = bool(dead_letter_topic(config, topic))
    return DeliveryRules(
        lock_duration_ms=config.record_lock_duration_ms,
        delivery_count_limit=config.delivery_count_limit,
        record_locks_max=config.partition_max_record_locks,
        dead_letters=wanted,
        dead_letters_of_rejected=wanted and config.dead_letter_rejected,
        left_behind_max=config.dead_letter_pending_max,
        backoff_ms=config.retry_backoff_ms,
        backoff_multiplier=config.retry_backoff_multiplier,
        backoff_max_ms=config.retry_backoff_max_ms,
        parked_max=min(config.partition_max_parked, ORDERED_MAX)
        if config.key_order
        else config.partition_max_parked,
        key_order=config.key_order,
    )
