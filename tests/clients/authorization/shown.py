"""The visible things in responses."""

from typing import Any

from tests.clients.authorization.case import GROUP


def names_shown(response: Any) -> list[str]:
    """Internal topics come and go."""
    return sorted(t.name for t in response.topics if t.name and not t.name.startswith("__"))


def operations_shown(response: Any) -> list[int]:
    return [t.topic_authorized_operations for t in response.topics]


def id_and_name(response: Any) -> list[tuple[bool, str | None]]:
    return [(topic.topic_id is not None, topic.name) for topic in response.topics]


def offsets_shown(response: Any) -> list[str]:
    return [topic.name for group in response.groups for topic in group.topics]


def groups_shown(response: Any) -> list[str]:
    return [group.group_id for group in response.groups if group.group_id == GROUP]


def group_operations(response: Any) -> list[int]:
    return [group.authorized_operations for group in response.groups]


def configs_shown(response: Any) -> list[tuple[int, int, int, int]]:
    return [
        (
            int(topic.error_code),
            topic.topic_config_error_code,
            topic.num_partitions,
            topic.replication_factor,
        )
        for topic in response.topics
    ]


def deleted_shown(response: Any) -> list[tuple[bool, str | None]]:
    return [(topic.topic_id is not None, topic.name) for topic in response.responses]


def transactions_shown(response: Any) -> list[str]:
    return [transaction.transactional_id for transaction in response.transaction_states]


def cluster_shown(response: Any) -> int:
    return int(response.cluster_authorized_operations)
