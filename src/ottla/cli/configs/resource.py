"""Whose configuration: of a topic, a group, a broker, all brokers, or a subscription to metrics."""

from dataclasses import dataclass
from typing import Annotated

from confluent_kafka.admin import ConfigResource, ResourceType
from cyclopts import Parameter

from ottla.cli.errors import UsageError
from ottla.cli.parameters import Flag


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Subject:
    topic: Annotated[str | None, Parameter(help="Name of a topic.")] = None
    group: Annotated[str | None, Parameter(help="Id of a group.")] = None
    broker: Annotated[int | None, Parameter(help="Id of a broker.")] = None
    client_metrics: Annotated[
        str | None, Parameter(help="Name of a subscription to the metrics of clients (KIP-714).")
    ] = None
    all_brokers: Annotated[
        Flag, Parameter(help="What holds where a broker has none of its own.")
    ] = False

    def validate(self) -> None:
        names = (self.topic, self.group, self.broker, self.client_metrics)
        given = [each for each in names if each is not None]
        if len(given) + self.all_brokers != 1:
            raise UsageError(
                "give one of --topic NAME, --group ID, --broker ID, --client-metrics NAME "
                "and --all-brokers"
            )

    def resource(self) -> ConfigResource:
        """Not of all brokers or client metrics: librdkafka has none for them."""
        assert not self.all_brokers
        assert self.client_metrics is None
        if self.topic is not None:
            return ConfigResource(ResourceType.TOPIC, self.topic)
        if self.group is not None:
            return ConfigResource(ResourceType.GROUP, self.group)
        return ConfigResource(ResourceType.BROKER, str(self.broker))

    def __str__(self) -> str:
        if self.all_brokers:
            return "all brokers"
        if self.client_metrics is not None:
            return f"client metrics {self.client_metrics}"
        if self.group is not None:
            return f"group {self.group}"
        return f"broker {self.broker}" if self.topic is None else f"topic {self.topic}"


NO_SUBJECT = Subject()
