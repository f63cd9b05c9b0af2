"""Unauthorized clients that keep trying during the faults."""

from collections.abc import Mapping
from itertools import count

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from tests.cluster.faults.history import History
from tests.cluster.faults.workload import Worker

_TRY_S = 0.2


class Intruder(Worker):
    """Tries to write and must fail: it has a login without rights, or a wrong password."""

    def __init__(
        self, name: str, history: History, bootstrap: str, topic: str, login: Mapping[str, object]
    ) -> None:
        super().__init__(name, history)
        self._topic = topic
        self.refused_count = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                **login,
                "client.id": name,
                "message.timeout.ms": 5_000,
                "log_level": 0,
            }
        )

    def work(self) -> None:
        for number in count():
            if self.is_stopping:
                break
            self._try(f"{self.name} {number}")
            self._producer.poll(_TRY_S)
        self._producer.flush(30)

    def _try(self, value: str) -> None:
        try:
            self._producer.produce(self._topic, value, on_delivery=self._on_delivery)
        except KafkaException as error:  # The client caches the refusal for a while.
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            self.refused_count += 1

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            where = f"{message.topic()}-{message.partition()} at {message.offset()}"
            self.history.on_problem(f"{self.name} has written to {where}")
        else:
            self.refused_count += 1
