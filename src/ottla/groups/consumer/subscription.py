"""Resolves subscribed regular expressions to topics."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from ottla.groups.consumer.group import Draft
from ottla.groups.consumer.records import ConsumerGroupRegularExpressionValue
from ottla.groups.consumer.regex import TopicPattern
from ottla.machine.catalog import TopicCatalog
from ottla.protocol.topics import INTERNAL_TOPICS


@lru_cache(maxsize=256)
def compiled(expression: str) -> TopicPattern:
    """Raises ApiError(invalid_regular_expression)."""
    return TopicPattern(expression)


def resolve_expressions(
    draft: Draft, catalog: TopicCatalog, now_ms: int, may_describe: Callable[[str], bool]
) -> bool:
    """Update the topics of every subscribed expression; returns whether any has changed.

    Only topics that the member being heard from may describe are included, as in Kafka.
    """
    group = draft.group
    wanted = {subscription.regex for subscription in group.subscriptions if subscription.regex}
    changed = False
    for expression in sorted(wanted):
        topics = tuple(sorted(filter(may_describe, _matching(expression, catalog))))
        known = group.resolved.get(expression)
        if known is None or known.topics != topics:
            changed = True
            value = ConsumerGroupRegularExpressionValue(
                topics=topics, version=catalog.topics_version, timestamp=now_ms
            )
            draft.write(group.expression_record(expression, value))
    for expression in sorted(group.resolved.keys() - wanted):
        draft.write(group.expression_record(expression, None))
    return changed


def _matching(expression: str, catalog: TopicCatalog) -> Iterable[str]:
    """Internal topics can be subscribed to only by name."""
    pattern = compiled(expression)
    return (
        name
        for name in catalog.topic_names()
        if name not in INTERNAL_TOPICS and pattern.matches(name)
    )
