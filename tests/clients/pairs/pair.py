"""Two requests that are sent at once, and the result if they are handled in order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from tests.clients.requests import TIMEOUT, batch, milliseconds
from tests.clients.versions import build_request
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
FIND_COORDINATOR, DESCRIBE_GROUPS, END_TXN = 10, 15, 26

# While a coordinator is created.
_PASSING = {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
}


@dataclass(frozen=True)
class Pair:
    """`see` gets both responses; its result must equal `expected`."""

    first: Any
    second: Any
    see: Callable[[Any, Any], object]
    expected: object
    first_is_answered: bool = True
    after: Callable[[], object] = lambda: None  # Cleans up for other rounds.


@dataclass
class World:
    """A connection to the broker, with topics and groups for this round only."""

    wire: Wire
    new_name: Callable[[], str]
    create_topic: Callable[..., str]

    def topic(self, *values: bytes, partitions: int = 1) -> str:
        """A new topic with these records in its first partition."""
        topic = self.create_topic(partitions)
        if values:
            self.call(produce(topic, *values))
        return topic

    def topic_id(self, topic: str) -> UUID:
        (found,) = self.call(metadata(topic)).topics
        assert isinstance(found.topic_id, UUID)
        return found.topic_id

    def group(self) -> str:
        """A new group whose coordinator is ready."""
        group = self._find_coordinator(0)
        values = {"groups": (group,), "include_authorized_operations": False}
        self._wait_for(build_request(DESCRIBE_GROUPS, 5, values))
        return group

    def transactional_id(self) -> str:
        """A new transactional id whose coordinator is ready."""
        transactional_id = self._find_coordinator(1)
        values = {"producer_id": 0, "producer_epoch": 0, "committed": True}
        self._wait_for(build_request(END_TXN, 3, {"transactional_id": transactional_id, **values}))
        return transactional_id

    def _find_coordinator(self, kind: int) -> str:
        name = self.new_name()
        values = {"key_type": kind, "coordinator_keys": (name,)}
        self._wait_for(build_request(FIND_COORDINATOR, 4, values))
        return name

    def _wait_for(self, request: Any) -> None:
        while _PASSING & set(error_codes(self.wire.call(request))):
            pass

    def call(self, request: Any) -> Any:
        """Sends a request before the pair; it must succeed."""
        response = self.wire.call(request)
        assert only_code(response) is ErrorCode.none, (request, response)
        return response


PAIRS: dict[str, Callable[[World], Pair]] = {}  # Keyed by name, from all modules with pairs.


def pair(make: Callable[[World], Pair]) -> Callable[[World], Pair]:
    """Adds a function that makes a pair for one round to the table."""
    PAIRS[make.__name__] = make
    return make


class Row(NamedTuple):
    """A pair about one thing, such as a topic, whose name is in both requests."""

    first: Callable[[str], Any]
    second: Callable[[str], Any]
    see: Callable[[Any, Any], object]
    expected: object
    first_is_answered: bool = True


def add_pairs(subject: Callable[[World], str], rows: dict[str, Row]) -> None:
    """`subject` makes the thing, or just its name, for each round."""

    def make(world: World, row: Row) -> Pair:
        name = subject(world)
        first, second, see, expected, is_answered = row
        return Pair(first(name), second(name), see, expected, is_answered)

    for name, row in rows.items():
        PAIRS[name] = partial(make, row=row)


def new_name(world: World) -> str:
    return world.new_name()


def new_topic(world: World) -> str:
    return world.topic()


def error_codes(entity: Any) -> Iterator[ErrorCode]:
    """All error codes of a response, at any depth."""
    if isinstance(entity, tuple):
        for item in entity:
            yield from error_codes(item)
    elif hasattr(entity, "__dataclass_fields__"):
        for name in entity.__dataclass_fields__:
            value = getattr(entity, name)
            if name.endswith("error_code"):
                yield value
            else:
                yield from error_codes(value)


def only_code(response: Any) -> ErrorCode:
    """The only error code of a response other than none, or none."""
    codes = set(error_codes(response)) - {ErrorCode.none}
    assert len(codes) <= 1, response
    return codes.pop() if codes else ErrorCode.none


def code_of_first(first: Any, _: Any) -> ErrorCode:
    return only_code(first)


def code_of_second(_: Any, second: Any) -> ErrorCode:
    return only_code(second)


def produce(
    topic: str, *values: bytes, partition: int = 0, acks: int = -1, version: int = 9, **more: Any
) -> Any:
    """`more` are fields of the batch, such as the producer id, or a transactional id."""
    transactional_id = more.pop("transactional_id", None)
    if transactional_id is not None:
        more["transactional"] = True
    records = batch(*(values or (b"value",)), **more)
    request = {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout": TIMEOUT,
        "topic_data": (
            {"name": topic, "partition_data": ({"index": partition, "records": records},)},
        ),
    }
    return build_request(PRODUCE, version, request)


def fetch(topic: str, offset: int = 0, *, wait_ms: int = 0, isolation_level: int = 0) -> Any:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    request = {
        "replica_id": -1,
        "max_wait": milliseconds(wait_ms),
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": isolation_level,
        "session_epoch": -1,
        "topics": ({"topic": topic, "partitions": (partition,)},),
        "forgotten_topics_data": (),
    }
    return build_request(FETCH, 12, request)


def list_offsets(
    topic: str, timestamp: int = -1, *, partition: int = 0, isolation_level: int = 0
) -> Any:
    asked = {"partition_index": partition, "timestamp": timestamp}
    request = {
        "replica_id": -1,
        "isolation_level": isolation_level,
        "topics": ({"name": topic, "partitions": (asked,)},),
    }
    return build_request(LIST_OFFSETS, 7, request)


def metadata(*topics: str) -> Any:
    request = {
        "topics": tuple({"topic_id": None, "name": topic} for topic in topics),
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    return build_request(METADATA, 12, request)


def offset(response: Any) -> int:
    """The offset that ListOffsets found."""
    found: int = response.topics[0].partitions[0].offset
    return found


def end_seen_by_second(_: Any, second: Any) -> int:
    return offset(second)
