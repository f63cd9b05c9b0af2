"""Creates and deletes topics while the broker is killed, and remembers what is certain."""

import itertools
import struct
import threading

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32
from tests.clients.requests import TIMEOUT, batch, produce, produced
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode


class TopicChurn(threading.Thread):
    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.created: set[str] = set()  # Acknowledged, and not requested to be deleted.
        self.deleted: set[str] = set()  # Acknowledged.
        self.bootstrap = bootstrap
        self._ending = threading.Event()
        self._failure: BaseException | None = None

    def end(self) -> None:
        self._ending.set()
        self.join()
        if self._failure is not None:
            raise self._failure

    def run(self) -> None:
        names = (f"churn-{number}" for number in itertools.count())
        try:
            while not self._ending.is_set():
                try:
                    with Wire(self.bootstrap) as wire:
                        while not self._ending.is_set():
                            self._create_and_delete(wire, next(names))
                except (OSError, EOFError, struct.error):
                    pass  # The broker is down; it will be restarted.
        except BaseException as error:
            self._failure = error

    def _create_and_delete(self, wire: Wire, name: str) -> None:
        if create_topic(wire, name):
            return  # From a stopping broker.
        answer = produced(wire.call(produce(name, batch(b"a"))))
        assert answer.error_code == ErrorCode.none, (name, answer)
        self.created.add(name)
        if len(self.created) % 5 == 0:
            self.created.discard(name)
            if not delete_topic(wire, name):
                self.deleted.add(name)


def create_topic(wire: Wire, name: str, partitions: int = 1) -> ErrorCode:
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(1),
        assignments=(),
        configs=(),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False)
    return wire.call(request).topics[0].error_code  # type: ignore[no-any-return]


def delete_topic(wire: Wire, name: str) -> ErrorCode:
    request = DeleteTopicsRequest(
        topics=(DeleteTopicState(name=TopicName(name), topic_id=None),), timeout=TIMEOUT
    )
    return wire.call(request).responses[0].error_code  # type: ignore[no-any-return]
