"""Confluent REST Proxy, API v3: brokers, their configs, and replicas."""

from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.client.async_wire.configs import ResourceType
from ottla.gateway.core.administration import Administration, Broker, Partition
from ottla.gateway.dialects.rest_errors import Handler, RestError, partition_not_found
from ottla.gateway.dialects.rest_v3_resources import (
    answer,
    answering_for,
    config_of,
    listed,
    named_config,
    related,
    resource,
)
from ottla.gateway.services import Services

_BROKERS: Final = "/v3/clusters/{cluster}/brokers"
_BROKER: Final = _BROKERS + "/{broker:int}"
_REPLICAS: Final = "/v3/clusters/{cluster}/topics/{topic}/partitions/{partition:int}/replicas"


def routes(services: Services) -> Sequence[BaseRoute]:
    administration = Administration(services.cluster)
    brokers = _Brokers(administration)
    answering = answering_for(administration)

    def route(path: str, handler: Handler) -> BaseRoute:
        return Route(path, answering(handler), methods=["GET"])

    return [
        route(_BROKERS, brokers.all),
        route(_BROKER, brokers.get),
        route(_BROKER + "/configs", brokers.configs),
        route(_BROKER + "/configs/{name}", brokers.config),
        route(_REPLICAS, brokers.replicas),
        route(_REPLICAS + "/{broker:int}", brokers.replica),
    ]


class _Brokers:
    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    async def all(self, request: Request) -> Response:
        found = (await self._administration.cluster()).brokers
        data = [_broker(request, each) for each in found if not each.is_fenced]
        return listed(request, "KafkaBrokerList", data)

    async def get(self, request: Request) -> Response:
        return answer(_broker(request, await self._one(request)))

    async def _one(self, request: Request) -> Broker:
        number = request.path_params["broker"]
        for each in (await self._administration.cluster()).brokers:
            if each.id == number and not each.is_fenced:
                return each
        raise RestError(404, 404, f"Broker {number} cannot be found.")

    async def configs(self, request: Request) -> Response:
        return listed(request, "KafkaBrokerConfigList", await self._configs(request))

    async def config(self, request: Request) -> Response:
        return named_config(request, await self._configs(request))

    async def _configs(self, request: Request) -> list[dict[str, Any]]:
        broker = (await self._one(request)).id
        found = await self._administration.configs(ResourceType.BROKER, str(broker))
        path = f"/brokers/{broker}"
        return [
            config_of(request, "KafkaBrokerConfig", path, each, broker_id=broker) for each in found
        ]

    async def replicas(self, request: Request) -> Response:
        return listed(request, "KafkaReplicaList", await self._replicas(request))

    async def replica(self, request: Request) -> Response:
        for found in await self._replicas(request):
            if found["broker_id"] == request.path_params["broker"]:
                return answer(found)
        raise RestError(404, 404, "Replica not found.")

    async def _replicas(self, request: Request) -> list[dict[str, Any]]:
        topic = await self._administration.topic(request.path_params["topic"])
        for each in topic.partitions:
            if each.id == request.path_params["partition"]:
                return [_replica(request, topic.name, each, broker) for broker in each.replicas]
        raise partition_not_found()


def _broker(request: Request, broker: Broker) -> dict[str, Any]:
    path = f"/brokers/{broker.id}"
    return resource(
        request,
        "KafkaBroker",
        path,
        broker_id=broker.id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        configs=related(request, f"{path}/configs"),
    )


def _replica(request: Request, topic: str, partition: Partition, broker: int) -> dict[str, Any]:
    return resource(
        request,
        "KafkaReplica",
        f"/topics/{topic}/partitions/{partition.id}/replicas/{broker}",
        topic_name=topic,
        partition_id=partition.id,
        broker_id=broker,
        is_leader=broker == partition.leader,
        is_in_sync=broker in partition.in_sync_replicas,
        broker=related(request, f"/brokers/{broker}"),
    )
