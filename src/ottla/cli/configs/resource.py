"""Whose configuration is meant: a topic's or a broker's."""

from dataclasses import dataclass
from typing import Annotated

from confluent_kafka.admin import ConfigResource, ResourceType
from cyclopts import Parameter

from ottla.cli.errors import UsageError


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Subject:
    topic: Annotated[str | None, Parameter(help="Name of a topic.")] = None
    broker: Annotated[int | None, Parameter(help="Id of a broker.")] = None

    def resource(self) -> ConfigResource:
        if (self.topic is None) == (self.broker is None):
            raise UsageError("give either --topic NAME or --broker ID")
        if self.topic is not None:
            return ConfigResource(ResourceType.TOPIC, self.topic)
        return ConfigResource(ResourceType.BROKER, str(self.broker))

    def __str__(self) -> str:
        return f"broker {self.broker}" if self.topic is None else f"topic {self.topic}"


NO_SUBJECT = Subject()
