"""A case of the table: a request by a user with certain access and nothing else.

Expected are all error codes of the response and, where it lists things, the things it shows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

TOPIC, MISSING = "t", "missing"
GROUP, TRANSACTION = "g", "x"
UNKNOWN_ID = UUID(int=7)
ANY, LITERAL = 1, 3

Access = tuple[str, str, str]  # Resource type, name, operation.
NOTHING: tuple[Access, ...] = ()

TOPIC_DENIED = {"topic_authorization_failed"}
GROUP_DENIED = {"group_authorization_failed"}
CLUSTER_DENIED = {"cluster_authorization_failed"}
TRANSACTION_DENIED = {"transactional_id_authorization_failed"}
NONE = {"none"}
UNKNOWN = {"unknown_topic_or_partition"}
UNCHECKED = None
CLUSTER_DENIED_OR_NOTHING: set[str] = set()  # If the response has no error field.


class World(NamedTuple):
    """The things that requests refer to."""

    topic_id: UUID
    node_id: int


class Case(NamedTuple):
    api: str
    what: str
    has: tuple[Access, ...]
    request: Any  # Or a function that builds it from the world.
    codes: set[str] | None  # None: anything but a refusal.
    shows: Callable[[Any], object] | None = None
    shown: object = None

    def __str__(self) -> str:
        return f"{self.api}-{self.what}".replace(" ", "-").replace(",", "")


def topic(operation: str, name: str = TOPIC) -> Access:
    return "topic", name, operation


def group(operation: str, name: str = GROUP) -> Access:
    return "group", name, operation


def cluster(operation: str) -> Access:
    return "cluster", "kafka-cluster", operation


def transaction(operation: str) -> Access:
    return "transactional_id", TRANSACTION, operation
