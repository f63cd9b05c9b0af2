"""Confluent REST Proxy, API v3: produce as a stream, topics, configs, consumer groups."""

import asyncio
import base64
import datetime as dt
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.client.async_wire.configs import ResourceType
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.topics import BROKER_DEFAULT
from ottla.gateway.api.bodies import read_stream
from ottla.gateway.api.record_stream import DuplexResponse
from ottla.gateway.core.administration import (
    Administration,
    TopicDescription,
)
from ottla.gateway.core.groups import SHARE, Group, GroupDescription, Groups, Member
from ottla.gateway.core.partition_writer import Published
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.dialects.rest_errors import (
    Handler,
    RestError,
    partition_not_found,
    read_body,
    rest_error_of,
    unprocessable,
)
from ottla.gateway.dialects.rest_v3_brokers import routes as brokers_routes
from ottla.gateway.dialects.rest_v3_resources import (
    MEDIA_TYPE,
    answer,
    answering_for,
    config_of,
    listed,
    named_config,
    related,
    resource,
    url,
)
from ottla.gateway.services import Services

_CLUSTER: Final = "/v3/clusters/{cluster}"
_TOPIC: Final = _CLUSTER + "/topics/{topic}"
_PRODUCED: Final = 200
_JSON_WHITESPACE: Final = b" \t\r\n"


def routes(services: Services) -> Sequence[BaseRoute]:
    administration = Administration(services.cluster)
    topics = _Topics(administration)
    groups = _ConsumerGroups(Groups(services.cluster))
    produce = _Producing(services.publisher, services.settings.record_bytes_max)
    answering = answering_for(administration)

    def route(path: str, handler: Handler, method: str = "GET") -> BaseRoute:
        return Route(path, answering(handler), methods=[method])

    return [
        route(_TOPIC + "/records", produce.records, "POST"),
        route("/v3/clusters", topics.clusters),
        route(_CLUSTER, topics.cluster),
        route(_CLUSTER + "/topics", topics.all),
        route(_CLUSTER + "/topics", topics.create, "POST"),
        route(_TOPIC, topics.get),
        route(_TOPIC, topics.delete, "DELETE"),
        route(_TOPIC + "/partitions", topics.partitions),
        route(_TOPIC + "/partitions/{partition:int}", topics.partition),
        route(_TOPIC + "/configs", topics.configs),
        route(_TOPIC + "/configs/{name}", topics.config),
        route(_TOPIC + "/configs/{name}", topics.set_config, "PUT"),
        route(_TOPIC + "/configs/{name}", topics.reset_config, "DELETE"),
        route(_TOPIC + "/configs:alter", topics.alter_configs, "POST"),
        *brokers_routes(services),
        route(_CLUSTER + "/consumer-groups", groups.all),
        route(_CLUSTER + "/consumer-groups/{group}", groups.get),
        route(_CLUSTER + "/consumer-groups/{group}/lags", groups.lags),
        route(_CLUSTER + "/consumer-groups/{group}/lag-summary", groups.lag_summary),
        route(_CLUSTER + "/consumer-groups/{group}/consumers", groups.consumers),
    ]


# Topics.


class _Topics:
    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    async def clusters(self, request: Request) -> Response:
        return listed(request, "KafkaClusterList", [await self._cluster(request)])

    async def cluster(self, request: Request) -> Response:
        return answer(await self._cluster(request))

    async def _cluster(self, request: Request) -> dict[str, Any]:
        name = (await self._administration.cluster()).id
        path = f"/v3/clusters/{name}"
        return {
            "kind": "KafkaCluster",
            "metadata": {"self": url(request, path)},
            "cluster_id": name,
            "brokers": {"related": url(request, f"{path}/brokers")},
            "topics": {"related": url(request, f"{path}/topics")},
            "consumer_groups": {"related": url(request, f"{path}/consumer-groups")},
        }

    async def all(self, request: Request) -> Response:
        topics = await self._administration.topics()
        data = [_topic(request, topic) for topic in topics]
        return listed(request, "KafkaTopicList", data)

    async def create(self, request: Request) -> Response:
        body = await read_body(request)
        name = body.get("topic_name")
        if not isinstance(name, str):
            raise unprocessable("topic_name is needed")
        validate_topic(name)
        numbers = {
            key: body.get(key) or BROKER_DEFAULT
            for key in ("partitions_count", "replication_factor")
        }
        if any(type(number) is not int for number in numbers.values()):
            raise unprocessable("partitions_count and replication_factor are numbers")
        await self._administration.create_topic(
            name,
            partitions=numbers["partitions_count"],
            replication_factor=numbers["replication_factor"],
            configs=_values(body.get("configs") or []),
        )
        topic = await self._administration.topic(name)
        return answer(_topic(request, topic), 201)

    async def get(self, request: Request) -> Response:
        topic = await self._administration.topic(request.path_params["topic"])
        return answer(_topic(request, topic))

    async def delete(self, request: Request) -> Response:
        validate_topic(request.path_params["topic"])
        await self._administration.delete_topic(request.path_params["topic"])
        return Response(status_code=204)

    async def partitions(self, request: Request) -> Response:
        return listed(request, "KafkaPartitionList", await self._partitions(request))

    async def partition(self, request: Request) -> Response:
        for found in await self._partitions(request):
            if found["partition_id"] == request.path_params["partition"]:
                return answer(found)
        raise partition_not_found()

    async def _partitions(self, request: Request) -> list[dict[str, Any]]:
        topic = await self._administration.topic(request.path_params["topic"])
        base = f"/topics/{topic.name}/partitions"
        return [
            resource(
                request,
                "KafkaPartition",
                f"{base}/{each.id}",
                topic_name=topic.name,
                partition_id=each.id,
                leader=None
                if each.leader is None
                else related(request, f"{base}/{each.id}/replicas/{each.leader}"),
                replicas=related(request, f"{base}/{each.id}/replicas"),
            )
            for each in topic.partitions
        ]

    # Configurations.

    async def configs(self, request: Request) -> Response:
        return listed(request, "KafkaTopicConfigList", await self._configs(request))

    async def config(self, request: Request) -> Response:
        return named_config(request, await self._configs(request))

    async def _configs(self, request: Request) -> list[dict[str, Any]]:
        name = request.path_params["topic"]
        found = await self._administration.configs(ResourceType.TOPIC, name)
        path = f"/topics/{name}"
        return [
            config_of(request, "KafkaTopicConfig", path, each, topic_name=name) for each in found
        ]

    async def set_config(self, request: Request) -> Response:
        value = (await read_body(request)).get("value")
        return await self._alter(request, {request.path_params["name"]: _text(value)})

    async def reset_config(self, request: Request) -> Response:
        return await self._alter(request, {request.path_params["name"]: None})

    async def alter_configs(self, request: Request) -> Response:
        return await self._alter(request, _values((await read_body(request)).get("data") or []))

    async def _alter(self, request: Request, values: Any) -> Response:
        name = request.path_params["topic"]
        validate_topic(name)
        await self._administration.alter_configs(ResourceType.TOPIC, name, values)
        return Response(status_code=204)


def _topic(request: Request, topic: TopicDescription) -> dict[str, Any]:
    path = f"/topics/{topic.name}"
    return resource(
        request,
        "KafkaTopic",
        path,
        topic_name=topic.name,
        is_internal=topic.is_internal,
        replication_factor=max((len(each.replicas) for each in topic.partitions), default=0),
        partitions_count=len(topic.partitions),
        partitions=related(request, f"{path}/partitions"),
        configs=related(request, f"{path}/configs"),
    )


def _values(items: Any) -> dict[str, Any]:
    """From `[{name, value}]`; the operation DELETE restores the default."""
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and isinstance(item.get("name"), str) for item in items
    ):
        raise unprocessable("configs are a list of {name, value}")
    return {
        item["name"]: None if item.get("operation") == "DELETE" else _text(item.get("value"))
        for item in items
    }


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise unprocessable("the value of a config is a string")
    return str(value)


# Consumer groups.


class _ConsumerGroups:
    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    async def all(self, request: Request) -> Response:
        groups = [group for group in await self._groups.all() if group.type != SHARE]
        data = [_group(request, group) for group in groups]
        return listed(request, "KafkaConsumerGroupList", data)

    async def get(self, request: Request) -> Response:
        return answer(_group(request, (await self._describe(request)).group))

    async def lags(self, request: Request) -> Response:
        found = await self._describe(request)
        base = f"/consumer-groups/{found.group.id}/lags"
        owners = _owners(found.members)
        data = [
            resource(
                request,
                "KafkaConsumerLag",
                f"{base}/{topic_partition.topic}/partitions/{topic_partition.partition}",
                consumer_group_id=found.group.id,
                topic_name=topic_partition.topic,
                partition_id=topic_partition.partition,
                current_offset=progress.offset,
                log_end_offset=progress.end_offset,
                lag=progress.lag,
                **_consumer(owners.get(topic_partition)),
            )
            for topic_partition, progress in found.progress.items()
        ]
        return listed(request, "KafkaConsumerLagList", data)

    async def lag_summary(self, request: Request) -> Response:
        found = await self._describe(request)
        lags = {partition: progress.lag for partition, progress in found.progress.items()}
        furthest = max(lags, key=lags.__getitem__, default=None)
        owner = None if furthest is None else _owners(found.members).get(furthest)
        return answer(
            resource(
                request,
                "KafkaConsumerGroupLagSummary",
                f"/consumer-groups/{found.group.id}/lag-summary",
                consumer_group_id=found.group.id,
                max_lag_topic_name=None if furthest is None else furthest.topic,
                max_lag_partition_id=None if furthest is None else furthest.partition,
                max_lag=0 if furthest is None else lags[furthest],
                total_lag=sum(lags.values()),
                **{f"max_lag_{name}": value for name, value in _consumer(owner).items()},
            )
        )

    async def consumers(self, request: Request) -> Response:
        found = await self._describe(request)
        data = [
            resource(
                request,
                "KafkaConsumer",
                f"/consumer-groups/{found.group.id}/consumers/{member.id}",
                consumer_group_id=found.group.id,
                **_consumer(member),
            )
            for member in found.members
        ]
        return listed(request, "KafkaConsumerList", data)

    async def _describe(self, request: Request) -> GroupDescription:
        return await self._groups.describe(request.path_params["group"])


def _owners(members: Sequence[Member]) -> dict[TopicPartition, Member]:
    return {partition: member for member in members for partition in member.partitions}


def _consumer(member: Member | None) -> dict[str, str | None]:
    return {
        "consumer_id": "" if member is None else member.id,
        "instance_id": None if member is None else member.instance_id,
        "client_id": "" if member is None else member.client_id,
    }


def _group(request: Request, group: Group) -> dict[str, Any]:
    path = f"/consumer-groups/{group.id}"
    return resource(
        request,
        "KafkaConsumerGroup",
        path,
        consumer_group_id=group.id,
        is_simple=group.protocol == "",
        state=group.state.upper(),
        type=group.type.upper(),
        consumers=related(request, f"{path}/consumers"),
        lag_summary=related(request, f"{path}/lag-summary"),
    )


# Producing.


class _Producing:
    def __init__(self, publisher: Publisher, record_bytes_max: int) -> None:
        self._publisher = publisher
        self._record_bytes_max = record_bytes_max

    async def records(self, request: Request) -> Response:
        """JSON objects in sequence, each answered in order while more are read."""
        topic: str = request.path_params["topic"]
        await self._publisher.topic(topic)
        read_stream(request)
        return DuplexResponse(self._answers(request, topic), media_type=MEDIA_TYPE)

    async def _answers(self, request: Request, topic: str) -> AsyncIterator[bytes]:
        cluster = request.path_params["cluster"]
        documents = _documents(request, self._record_bytes_max)
        try:
            async for document in documents:
                yield json.dumps(await self._produce(cluster, topic, document)).encode() + b"\r\n"
        except RestError as error:
            yield json.dumps({"error_code": error.code, "message": error.message}).encode()
        except ClientDisconnect:
            return

    async def _produce(self, cluster: str, topic: str, document: Any) -> dict[str, Any]:
        try:
            record = _record(document)
            (outcome,) = await self._publisher.publish_all(topic, [record])
            if isinstance(outcome, Exception):
                raise outcome
        except Exception as error:
            found = rest_error_of(error)
            return {"error_code": found.code, "message": found.message}
        return _produced(cluster, topic, record, outcome)


def _produced(cluster: str, topic: str, record: NewRecord, done: Published) -> dict[str, Any]:
    moment = dt.datetime.fromtimestamp(done.timestamp_ms / 1000, dt.UTC)
    return {
        "error_code": _PRODUCED,
        "cluster_id": cluster,
        "topic_name": topic,
        "partition_id": done.partition,
        "offset": done.offset,
        "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **{
            name: {"size": len(data)}
            for name, data in (("key", record.key), ("value", record.value))
            if data is not None
        },
    }


async def _documents(request: Request, bytes_max: int) -> AsyncIterator[Any]:
    """Concatenated objects, with or without newlines between them."""
    decoder = json.JSONDecoder()
    pending = b""
    async for chunk in request.stream():
        pending += chunk
        while pending := pending.lstrip(_JSON_WHITESPACE):
            try:
                text = pending.decode()
                document, end = decoder.raw_decode(text)
            except ValueError:
                if len(pending) > bytes_max:
                    raise RestError(413, 413, f"A record has at most {bytes_max} bytes.") from None
                break
            pending = text[end:].encode()
            yield document
            await asyncio.sleep(0)
    if pending.strip():
        raise RestError(400, 400, "Error processing JSON: the body ends within a record.")


def _record(document: Any) -> NewRecord:
    if not isinstance(document, dict):
        raise unprocessable("a record is a JSON object", 42206)
    partition = document.get("partition_id")
    if partition is not None and (type(partition) is not int or partition < 0):
        raise unprocessable("partition_id is a number from 0 on", 42206)
    headers = document.get("headers") or []
    if not isinstance(headers, list) or not all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in headers
    ):
        raise unprocessable("headers are a list of {name, value}", 42206)
    return NewRecord(
        _data(document.get("value")),
        _data(document.get("key")),
        partition,
        tuple((each["name"], _base64(each.get("value"))) for each in headers),
        _timestamp_ms(document.get("timestamp")),
    )


def _data(data: Any) -> bytes | None:
    if data is None:
        return None
    if not isinstance(data, dict):
        raise unprocessable("a key or value is {type, data}", 42206)
    match data.get("type", "BINARY"):
        case "JSON":
            return json.dumps(data.get("data"), separators=(",", ":")).encode()
        case "STRING" if isinstance(data.get("data"), str):
            return str(data["data"]).encode()
        case "BINARY":
            return _base64(data.get("data"))
    raise unprocessable("the types of data are BINARY, JSON and STRING", 42206)


def _base64(value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise unprocessable("Payload error. The data is not base64.", 42206) from None


def _timestamp_ms(value: Any) -> int | None:
    if value is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise unprocessable("timestamp is a time of ISO 8601", 42206) from None
    return int(moment.timestamp() * 1000)
