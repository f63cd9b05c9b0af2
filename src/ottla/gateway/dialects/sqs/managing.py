"""Queue management: create, list, describe, change, purge, delete."""

import base64
from typing import Any, Final

from ottla.gateway.core.queues import Queues
from ottla.gateway.dialects.sqs.attributes import COUNTS, validate_names
from ottla.gateway.dialects.sqs.call import Call, queue_in
from ottla.gateway.dialects.sqs.catalogue import Catalogue, Queue
from ottla.gateway.dialects.sqs.errors import SqsError, invalid_value

_RESULTS_MAX: Final = 1_000
_TAGS_MAX: Final = 50


class Managing:
    def __init__(self, catalogue: Catalogue, queues: Queues) -> None:
        self._catalogue = catalogue
        self._queues = queues

    async def create_queue(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        tags = request.get("tags") or {}
        _validate_tags(tags)
        queue = await self._catalogue.create(
            request["QueueName"], request.get("Attributes") or {}, tags
        )
        return {"QueueUrl": call.url(queue.name)}

    async def get_queue_url(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        queue = await self._catalogue.get(request["QueueName"], fresh=True)
        return {"QueueUrl": call.url(queue.name)}

    async def list_queues(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        prefix = request.get("QueueNamePrefix") or ""
        names = [name for name in await self._catalogue.names() if name.startswith(prefix)]
        return _page(call, names, request, "QueueUrls")

    async def list_dead_letter_source_queues(
        self, call: Call, request: dict[str, Any]
    ) -> dict[str, Any]:
        queue = await self._catalogue.get(queue_in(request), fresh=True)
        names = await self._catalogue.sources_of(queue.name)
        return {"queueUrls": [], **_page(call, names, request, "queueUrls")}

    async def delete_queue(self, _call: Call, request: dict[str, Any]) -> None:
        await self._catalogue.delete(queue_in(request))

    async def purge_queue(self, _call: Call, request: dict[str, Any]) -> None:
        queue = await self._catalogue.get(queue_in(request))
        await self._catalogue.configure(queue)
        await self._queues.purge(queue.name, queue.group)

    async def get_queue_attributes(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        wanted = request.get("AttributeNames") or []
        validate_names(wanted)
        queue = await self._catalogue.get(queue_in(request), fresh=True)
        found = {
            **queue.attributes,
            "QueueArn": call.arn(queue.name),
            "CreatedTimestamp": str(queue.created_s),
            "LastModifiedTimestamp": str(queue.modified_s),
        }
        if "All" in wanted or any(name in COUNTS for name in wanted):
            found.update(await self._counts(queue))
        if "All" not in wanted:
            found = {name: value for name, value in found.items() if name in wanted}
        return {"Attributes": found} if found else {}

    async def _counts(self, queue: Queue) -> dict[str, str]:
        await self._catalogue.configure(queue)
        counts = await self._queues.counts(queue.name, queue.group)
        return dict(zip(COUNTS, (str(counts.available), str(counts.parked), "0"), strict=True))

    async def set_queue_attributes(self, _call: Call, request: dict[str, Any]) -> None:
        await self._catalogue.set_attributes(queue_in(request), request["Attributes"])

    # Tags.

    async def tag_queue(self, _call: Call, request: dict[str, Any]) -> None:
        tags: dict[str, str] = request["Tags"]
        queue = await self._catalogue.get(queue_in(request), fresh=True)
        _validate_tags({**queue.tags, **tags})
        await self._catalogue.set_tags(queue.name, tags)

    async def untag_queue(self, _call: Call, request: dict[str, Any]) -> None:
        await self._catalogue.set_tags(queue_in(request), dict.fromkeys(request["TagKeys"]))

    async def list_queue_tags(self, _call: Call, request: dict[str, Any]) -> dict[str, Any]:
        queue = await self._catalogue.get(queue_in(request), fresh=True)
        return {"Tags": dict(queue.tags)} if queue.tags else {}

    # Permissions: the brokers decide who may do what.

    async def add_permission(self, _call: Call, request: dict[str, Any]) -> None:
        await self._catalogue.get(queue_in(request))
        raise _no_permissions()

    async def remove_permission(self, _call: Call, request: dict[str, Any]) -> None:
        await self._catalogue.get(queue_in(request))
        raise _no_permissions()


def _no_permissions() -> SqsError:
    return SqsError("UnsupportedOperation", "Permissions are those of the Kafka cluster's ACLs.")


def _validate_tags(tags: dict[str, str]) -> None:
    if len(tags) > _TAGS_MAX:
        raise invalid_value(f"Too many tags added for queue; at most {_TAGS_MAX} are allowed.")
    for key, value in tags.items():
        if not 1 <= len(key) <= 128 or len(value) > 256:
            raise invalid_value(f"The tag {key} has an invalid length.")


def _page(call: Call, names: list[str], request: dict[str, Any], member: str) -> dict[str, Any]:
    """Without MaxResults the first thousand; the next page's token is the last name."""
    limit = request.get("MaxResults")
    if limit is not None and not 1 <= limit <= _RESULTS_MAX:
        raise invalid_value(
            f"Value {limit} for parameter MaxResults is invalid. Reason: MaxResults must be an"
            f" integer between 1 and {_RESULTS_MAX}."
        )
    token = request.get("NextToken")
    if token:
        after = _name_of(token)
        names = [name for name in names if name > after]
    shown = names[: limit or _RESULTS_MAX]
    answer: dict[str, Any] = {member: [call.url(name) for name in shown]} if shown else {}
    if limit is not None and len(shown) < len(names):
        answer["NextToken"] = base64.urlsafe_b64encode(shown[-1].encode()).decode()
    return answer


def _name_of(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token.encode()).decode()
    except ValueError:
        raise invalid_value("Invalid or expired next token.") from None
