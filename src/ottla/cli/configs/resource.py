"""Whose configuration: of a topic, a group, a broker, all brokers, or a subscription to metrics."""

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from ottla.cli.errors import UsageError
from ottla.cli.parameters import Flag
from ottla.client.wire.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC, Resource

_KINDS: Final = {
    TOPIC: "topic",
    GROUP: "group",
    BROKER: "broker",
    CLIENT_METRICS: "client metrics",
}


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Subject:
    topic: Annotated[str | None, Parameter(help="Name of a topic.")] = None
    group: Annotated[str | None, Parameter(help="Id of a group.")] = None
    broker: Annotated[int | None, Parameter(help="Id of a broker.")] = None
    client_metrics: Annotated[
        str | None, Parameter(help="Name of a client metrics subscription (KIP-714).")
    ] = None
    all_brokers: Annotated[Flag, Parameter(help="The cluster-wide default for brokers.")] = False

    def resource(self) -> Resource:
        """All brokers are the one without a name."""
        names = {
            TOPIC: self.topic,
            GROUP: self.group,
            BROKER: None if self.broker is None else str(self.broker),
            CLIENT_METRICS: self.client_metrics,
        }
        given = [(kind, name) for kind, name in names.items() if name is not None]
        if self.all_brokers:
            given.append((BROKER, ""))
        if len(given) != 1:
            raise UsageError(
                "give one of --topic NAME, --group ID, --broker ID, --client-metrics NAME "
                "and --all-brokers"
            )
        return given[0]

    def __str__(self) -> str:
        if self.all_brokers:
            return "all brokers"
        kind, name = self.resource()
        return f"{_KINDS[kind]} {name}"


NO_SUBJECT = Subject()
