"""Confluent REST Proxy, API v2: topics, partitions and brokers.

`GET /topics` and `GET /topics/{topic}` are also calls of the gateway's own API, so they take the
proxy's form only for requests that accept its media type; the other paths are the proxy's alone.
"""

from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from ottla.client.async_wire.configs import ResourceType
from ottla.gateway.core.administration import Administration, Partition, Span
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.dialects.rest_errors import Handler, answering, partition_not_found
from ottla.gateway.dialects.rest_v2 import MEDIA_TYPE, answer
from ottla.gateway.route_table import PROXY
from ottla.gateway.services import Services

_PARTITIONS: Final = "/topics/{topic}/partitions"
_PARTITION: Final = _PARTITIONS + "/{partition:int}"


class ProxyRoute(Route):
    """For requests that accept the proxy's media type."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope.get(PROXY) else (Match.NONE, {})


def routes(services: Services) -> Sequence[BaseRoute]:
    metadata = _Metadata(Administration(services.cluster))

    def route(path: str, handler: Handler, kind: type[Route] = Route) -> BaseRoute:
        return kind(path, answering(handler, MEDIA_TYPE), methods=["GET"])

    return [
        route("/topics", metadata.topics, ProxyRoute),
        route("/topics/{topic}", metadata.topic, ProxyRoute),
        route(_PARTITIONS, metadata.partitions),
        route(_PARTITION, metadata.partition),
        route(_PARTITION + "/offsets", metadata.offsets),
        route("/brokers", metadata.brokers),
    ]


class _Metadata:
    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    async def topics(self, _: Request) -> Response:
        return answer([topic.name for topic in await self._administration.topics()])

    async def topic(self, request: Request) -> Response:
        name = request.path_params["topic"]
        validate_topic(name)
        topic = await self._administration.topic(name)
        found = await self._administration.configs(ResourceType.TOPIC, name)
        configs = {each.name: each.value for each in found}
        partitions = [_partition(each) for each in topic.partitions]
        return answer({"name": name, "configs": configs, "partitions": partitions})

    async def partitions(self, request: Request) -> Response:
        topic = await self._administration.topic(request.path_params["topic"])
        return answer([_partition(each) for each in topic.partitions])

    async def partition(self, request: Request) -> Response:
        topic = await self._administration.topic(request.path_params["topic"])
        for each in topic.partitions:
            if each.id == request.path_params["partition"]:
                return answer(_partition(each))
        raise partition_not_found()

    async def offsets(self, request: Request) -> Response:
        topic = await self._administration.topic(request.path_params["topic"])
        spans = await self._administration.offsets(topic)
        span: Span | None = spans.get(request.path_params["partition"])
        if span is None:
            raise partition_not_found()
        return answer({"beginning_offset": span.start_offset, "end_offset": span.end_offset})

    async def brokers(self, _: Request) -> Response:
        found = (await self._administration.cluster()).brokers
        return answer({"brokers": [each.id for each in found if not each.is_fenced]})


def _partition(partition: Partition) -> dict[str, Any]:
    return {
        "partition": partition.id,
        "leader": -1 if partition.leader is None else partition.leader,
        "replicas": [
            {
                "broker": broker,
                "leader": broker == partition.leader,
                "in_sync": broker in partition.in_sync_replicas,
            }
            for broker in partition.replicas
        ],
    }
