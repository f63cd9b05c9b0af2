"""Administration: topics, configurations, groups, dead letters, transactions, the cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ottla.client.async_wire.configs import ResourceType
from ottla.client.async_wire.topics import ALL_RECORDS
from ottla.client.wire.topics import BROKER_DEFAULT
from ottla.gateway.api.bodies import Fields, read_object
from ottla.gateway.core.administration import (
    Administration,
    Config,
    TopicDescription,
)
from ottla.gateway.core.dead_letters import DeadLetters, Letter
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.groups import SHARE, GroupDescription, Groups
from ottla.gateway.core.open_transactions import OpenTransactions
from ottla.gateway.core.record_json import record_to_json
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.services import Services

_LETTERS: Final = 100
_LETTERS_MAX: Final = 1_000


def routes(services: Services) -> Sequence[BaseRoute]:
    administration = Administration(services.cluster)
    groups = Groups(services.cluster)
    return [
        *_topic_routes(administration),
        *_config_routes(administration),
        *_group_routes(groups),
        *_dead_letter_routes(DeadLetters(services.cluster, administration, groups)),
        *_transaction_routes(OpenTransactions(services.cluster)),
    ]


# Topics and the cluster.


def _topic_routes(administration: Administration) -> list[BaseRoute]:
    async def show_cluster(_: Request) -> Response:
        found = await administration.cluster()
        brokers = [broker._asdict() for broker in found.brokers]
        return JSONResponse({"id": found.id, "controller": found.controller, "brokers": brokers})

    async def list_topics(_: Request) -> Response:
        topics = [_summary(topic) for topic in await administration.topics()]
        return JSONResponse({"topics": topics})

    async def create_topic(request: Request) -> Response:
        fields = Fields(await read_object(request))
        name = fields.text("name")
        options: dict[str, Any] = {
            "partitions": fields.integer("partitions", BROKER_DEFAULT),
            "replication_factor": fields.integer("replication_factor", BROKER_DEFAULT),
            "configs": _texts(fields.mapping("configs")),
            "validate_only": fields.flag("validate_only"),
        }
        fields.validate_all_known()
        validate_topic(name)
        await administration.create_topic(name, **options)
        return JSONResponse({"name": name}, 201, headers={"Location": f"/topics/{name}"})

    async def describe_topic(request: Request) -> Response:
        topic = await administration.topic(request.path_params["topic"])
        spans = await administration.offsets(topic)
        partitions = [
            {**partition._asdict(), **spans[partition.id]._asdict()}
            for partition in topic.partitions
        ]
        return JSONResponse({**_summary(topic), "partitions": partitions})

    async def delete_topic(request: Request) -> Response:
        name = request.path_params["topic"]
        validate_topic(name)
        await administration.delete_topic(name)
        return Response(status_code=204)

    async def add_partitions(request: Request) -> Response:
        name = request.path_params["topic"]
        count = Fields(await read_object(request)).integer("count")
        await administration.set_partition_count(name, count)
        return JSONResponse({"name": name, "partitions": count})

    async def delete_records(request: Request) -> Response:
        name = request.path_params["topic"]
        validate_topic(name)
        before = Fields(await read_object(request)).mapping("before")
        offsets = _offsets(before) if before else await _whole(administration, name)
        starts = await administration.delete_records(name, offsets)
        return JSONResponse({"start_offsets": {str(key): starts[key] for key in sorted(starts)}})

    return [
        Route("/cluster", show_cluster),
        Route("/topics", list_topics, methods=["GET"]),
        Route("/topics", create_topic, methods=["POST"]),
        Route("/topics/{topic}", describe_topic, methods=["GET"]),
        Route("/topics/{topic}", delete_topic, methods=["DELETE"]),
        Route("/topics/{topic}/partitions", add_partitions, methods=["POST"]),
        Route("/topics/{topic}/records:delete", delete_records, methods=["POST"]),
    ]


def _summary(topic: TopicDescription) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": None if topic.id is None else str(topic.id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
        "under_replicated_count": sum(
            len(each.in_sync_replicas) < len(each.replicas) for each in topic.partitions
        ),
        "leaderless_count": sum(each.leader is None for each in topic.partitions),
    }


def _offsets(before: Mapping[str, Any]) -> dict[int, int]:
    offsets = {}
    for partition, offset in before.items():
        if not partition.isdecimal() or not isinstance(offset, int) or isinstance(offset, bool):
            raise Invalid('before is an object of offsets by partition, such as {"0": 17}')
        offsets[int(partition)] = offset
    return offsets


async def _whole(administration: Administration, name: str) -> dict[int, int]:
    topic = await administration.topic(name)
    return {partition.id: ALL_RECORDS for partition in topic.partitions}


# Configurations.


def _config_routes(administration: Administration) -> list[BaseRoute]:
    def pair(path: str, kind: ResourceType, parameter: str) -> list[BaseRoute]:
        async def show(request: Request) -> Response:
            found = await administration.configs(kind, _resource(request))
            return JSONResponse({"configs": [_config(each) for each in found]})

        async def alter(request: Request) -> Response:
            name = _resource(request)
            values = (await read_object(request)).items()
            if not values:
                raise Invalid("the body names no configuration")
            wanted = {key: None if value is None else _text(value) for key, value in values}
            await administration.alter_configs(kind, name, wanted)
            return Response(status_code=204)

        def _resource(request: Request) -> str:
            name: str = request.path_params[parameter]
            if kind is ResourceType.BROKER and not name.isdecimal():
                raise Invalid(f"{name} is not the id of a broker")
            if kind is ResourceType.TOPIC:
                validate_topic(name)
            return name

        return [Route(path, show, methods=["GET"]), Route(path, alter, methods=["PATCH"])]

    return [
        *pair("/topics/{topic}/configs", ResourceType.TOPIC, "topic"),
        *pair("/groups/{group}/configs", ResourceType.GROUP, "group"),
        *pair("/brokers/{broker}/configs", ResourceType.BROKER, "broker"),
    ]


def _config(config: Config) -> dict[str, Any]:
    return {
        "name": config.name,
        "value": config.value,
        "source": config.source,
        "default": config.is_default,
        "read_only": config.is_read_only,
        "sensitive": config.is_sensitive,
    }


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: _text(value) for key, value in values.items()}


def _text(value: Any) -> str:
    """Config values are text; numbers and booleans are written as in a config file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise Invalid("the value of a configuration is a string, a number, true or false")


# Groups.


def _group_routes(groups: Groups) -> list[BaseRoute]:
    async def list_groups(_: Request) -> Response:
        return JSONResponse({"groups": [each._asdict() for each in await groups.all()]})

    async def list_share_groups(_: Request) -> Response:
        found = [each._asdict() for each in await groups.all(SHARE)]
        return JSONResponse({"groups": found})

    async def describe_group(request: Request) -> Response:
        return JSONResponse(_description(await groups.describe(request.path_params["group"])))

    async def delete_group(request: Request) -> Response:
        await groups.delete(request.path_params["group"])
        return Response(status_code=204)

    return [
        Route("/groups", list_groups),
        Route("/groups/{group}", describe_group, methods=["GET"]),
        Route("/groups/{group}", delete_group, methods=["DELETE"]),
        Route("/share-groups", list_share_groups),
    ]


def _description(found: GroupDescription) -> dict[str, Any]:
    ages = [each.lag_ms for each in found.progress.values() if each.lag_ms is not None]
    return {
        **found.group._asdict(),
        "lag": sum(each.lag for each in found.progress.values()),
        "lag_seconds": max(ages, default=0) / 1000,
        "members": [
            {
                **member._asdict(),
                "partitions": [each._asdict() for each in member.partitions],
            }
            for member in found.members
        ],
        "partitions": [
            {
                **topic_partition._asdict(),
                "offset": progress.offset,
                "end_offset": progress.end_offset,
                "lag": progress.lag,
                "lag_seconds": None if progress.lag_ms is None else progress.lag_ms / 1000,
                "note": progress.note,
            }
            for topic_partition, progress in found.progress.items()
        ],
    }


# Dead letters.


def _dead_letter_routes(dead_letters: DeadLetters) -> list[BaseRoute]:
    async def list_topics(_: Request) -> Response:
        found = await dead_letters.topics()
        topics = [{"topic": name, "letters": count} for name, count in found.items()]
        return JSONResponse({"topics": topics})

    async def look(request: Request) -> Response:
        name = request.path_params["topic"]
        validate_topic(name)
        query = Fields(dict(request.query_params), from_text=True)
        partition = query.integer("partition", -1)
        letters = await dead_letters.look(
            name,
            partition=None if partition < 0 else partition,
            offset=query.integer("offset", 0),
            count=min(query.integer("max", _LETTERS), _LETTERS_MAX),
        )
        return JSONResponse({"letters": [_letter(name, letter) for letter in letters]})

    async def redrive(request: Request) -> Response:
        name = request.path_params["topic"]
        validate_topic(name)
        fields = Fields(await read_object(request))
        if not fields:
            return JSONResponse({"redriven": await dead_letters.redrive_all(name)})
        letter = await dead_letters.redrive_one(
            name, fields.integer("partition"), fields.integer("offset")
        )
        return JSONResponse({"redriven": 1, "letter": _letter(name, letter)})

    return [
        Route("/dead-letters", list_topics),
        Route("/dead-letters/{topic}", look, methods=["GET"]),
        Route("/dead-letters/{topic}:redrive", redrive, methods=["POST"]),
    ]


def _letter(topic: str, letter: Letter) -> dict[str, Any]:
    return {
        **record_to_json(topic, letter.partition, letter.record),
        "origin": None if letter.origin is None else letter.origin._asdict(),
        "redriven": letter.redriven_ms,
    }


# Transactions.


def _transaction_routes(transactions: OpenTransactions) -> list[BaseRoute]:
    async def list_transactions(_: Request) -> Response:
        found = [each._asdict() for each in await transactions.all()]
        return JSONResponse({"transactions": found})

    async def describe(request: Request) -> Response:
        found = await transactions.describe(request.path_params["id"])
        partitions = [each._asdict() for each in found.partitions]
        return JSONResponse({**found._asdict(), "partitions": partitions})

    async def abort(request: Request) -> Response:
        await transactions.abort(request.path_params["id"])
        return Response(status_code=204)

    return [
        Route("/transactions", list_transactions),
        Route("/transactions/{id}", describe, methods=["GET"]),
        Route("/transactions/{id}:abort", abort, methods=["POST"]),
    ]
