"""Move tasks: return the messages of a dead-letter queue to their sources, or move them elsewhere.

A task runs in the gateway that started it and is recorded in the table that gateways share. A task
whose gateway died is listed as failed; when restarted it continues with the rest, because a message
leaves its queue only once it is in the other.
"""

import asyncio
import base64
import json
import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ottla.client.wire.errors import WireError
from ottla.gateway.core.compacted_table import CompactedTable
from ottla.gateway.core.dead_letters import origin_of, without_marks
from ottla.gateway.core.errors import CoreError
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.queues import Delivery, Queues
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.dialects.sqs.arns import queue_of_arn
from ottla.gateway.dialects.sqs.call import Call
from ottla.gateway.dialects.sqs.catalogue import Catalogue, Queue
from ottla.gateway.dialects.sqs.errors import SqsError, invalid_value

logger = logging.getLogger(__name__)

TOPIC: Final = "__gateway_sqs_moves"
RUNNING: Final = "RUNNING"
COMPLETED: Final = "COMPLETED"
CANCELLING: Final = "CANCELLING"
CANCELLED: Final = "CANCELLED"
FAILED: Final = "FAILED"

_BATCH: Final = 10
_PER_SECOND_MAX: Final = 500
_LISTED_MAX: Final = 10
_LOCK_MS: Final = 60_000
_SILENT_MS_MAX: Final = 60_000  # The gateway of a task without updates for this long has died.
_UPDATE_INTERVAL_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: str
    source: str
    destination: str | None  # None: each message's source.
    status: str
    started_ms: int
    said_ms: int  # When its gateway last updated it.
    per_second: int | None
    to_move: int
    moved: int = 0
    reason: str | None = None

    @property
    def state(self) -> str:
        silent = time.time_ns() // 1_000_000 - self.said_ms > _SILENT_MS_MAX
        return FAILED if silent and self.status in (RUNNING, CANCELLING) else self.status


class Moving:
    def __init__(
        self, catalogue: Catalogue, queues: Queues, publisher: Publisher, table: CompactedTable
    ) -> None:
        self._catalogue = catalogue
        self._queues = queues
        self._publisher = publisher
        self._table = table
        self._running: dict[str, asyncio.Task[None]] = {}  # By move task id.

    async def start_message_move_task(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        source = await self._queue(request["SourceArn"])
        destination = None
        if request.get("DestinationArn"):
            destination = (await self._queue(request["DestinationArn"])).name
        per_second = request.get("MaxNumberOfMessagesPerSecond")
        if per_second is not None and not 1 <= per_second <= _PER_SECOND_MAX:
            raise invalid_value(
                f"MaxNumberOfMessagesPerSecond must be an integer between 1 and {_PER_SECOND_MAX}."
            )
        if not await self._catalogue.sources_of(source.name):
            raise invalid_value("Source queue must be configured as a Dead Letter Queue.")
        if any(task.state in (RUNNING, CANCELLING) for task in await self._tasks(source.name)):
            raise invalid_value(
                "There is already a task running. Only one active task is allowed for a source"
                " queue arn at a given time."
            )
        await self._catalogue.configure(source)
        now_ms = time.time_ns() // 1_000_000
        task = Task(
            id=str(uuid.uuid4()),
            source=source.name,
            destination=destination,
            status=RUNNING,
            started_ms=now_ms,
            said_ms=now_ms,
            per_second=per_second,
            to_move=(await self._queues.counts(source.name, source.group)).available,
        )
        await self._write(task)
        self._running[task.id] = asyncio.ensure_future(self._run(task, source))
        return {"TaskHandle": _handle(call, task)}

    async def list_message_move_tasks(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        source = await self._queue(request["SourceArn"])
        limit = request.get("MaxResults", 1)
        if not 1 <= limit <= _LISTED_MAX:
            raise invalid_value(f"MaxResults must be between 1 and {_LISTED_MAX}.")
        tasks = await self._tasks(source.name)
        return {"Results": [_listed(call, task) for task in tasks[:limit]]}

    async def cancel_message_move_task(
        self, _call: Call, request: dict[str, Any]
    ) -> dict[str, Any]:
        task = await self._task(request["TaskHandle"])
        if task.state != RUNNING:
            raise SqsError(
                "UnsupportedOperation", "Only active tasks can be cancelled; this one is not."
            )
        await self._write(replace(task, status=CANCELLING))
        return {"ApproximateNumberOfMessagesMoved": task.moved}

    # Recorded tasks.

    async def _queue(self, arn: str) -> Queue:
        try:
            return await self._catalogue.get(queue_of_arn(arn), fresh=True)
        except ValueError:
            raise invalid_value(f"Value {arn} for parameter SourceArn is invalid.") from None
        except SqsError:
            raise SqsError(
                "ResourceNotFoundException",
                "The resource that you specified for the SourceArn parameter doesn't exist.",
                404,
            ) from None

    async def _task(self, handle: str) -> Task:
        await self._table.refresh()
        try:
            content = self._table.get(json.loads(base64.b64decode(handle))["taskId"])
        except (ValueError, KeyError, TypeError):
            raise invalid_value("Value for parameter TaskHandle is invalid.") from None
        if content is None:
            raise SqsError("ResourceNotFoundException", "Task does not exist.", 404)
        return Task(**json.loads(content))

    async def _tasks(self, source: str) -> list[Task]:
        """A queue's tasks, newest first."""
        await self._table.refresh()
        tasks = [Task(**json.loads(content)) for _, content in self._table.items()]
        mine = [task for task in tasks if task.source == source]
        return sorted(mine, key=lambda task: task.started_ms, reverse=True)

    async def _write(self, task: Task) -> None:
        updated = replace(task, said_ms=time.time_ns() // 1_000_000)
        await self._table.put(task.id, json.dumps(asdict(updated)).encode())

    # Running tasks.

    async def _run(self, task: Task, source: Queue) -> None:
        try:
            task = await self._move(task, source)
        except (WireError, CoreError, SqsError) as error:
            logger.warning("the move of messages from %s failed: %s", source.name, error)
            task = replace(task, status=FAILED, reason=str(error))
        try:
            await self._write(task)
        except WireError as error:
            logger.warning("the end of a move from %s was not recorded: %s", source.name, error)
        finally:
            del self._running[task.id]

    async def _move(self, task: Task, source: Queue) -> Task:
        updated_at = begun_at = time.monotonic()
        while True:
            deliveries = await self._queues.receive(
                source.name,
                source.group,
                count=_BATCH,
                wait_ms=1_000,
                lock_ms=_LOCK_MS,
            )
            if not deliveries:
                return replace(task, status=COMPLETED)
            task = replace(task, moved=task.moved + await self._move_some(task, deliveries))
            if time.monotonic() - updated_at > _UPDATE_INTERVAL_S or task.moved % 100 < _BATCH:
                updated_at = time.monotonic()
                if await self._is_cancelled(task):
                    return replace(task, status=CANCELLED)
                await self._write(task)
            if task.per_second is not None:
                await asyncio.sleep(
                    max(0.0, begun_at + task.moved / task.per_second - time.monotonic())
                )

    async def _is_cancelled(self, task: Task) -> bool:
        await self._table.refresh()
        content = self._table.get(task.id)
        return content is not None and Task(**json.loads(content)).status == CANCELLING

    async def _move_some(self, task: Task, deliveries: Sequence[Delivery]) -> int:
        """What cannot be written stays, and can be received again at once."""
        moved: list[str] = []
        try:
            for delivery in deliveries:
                await self._move_one(task, delivery)
                moved.append(delivery.handle)
        finally:
            await self._queues.acknowledge(moved)
            self._queues.put_back(deliveries[len(moved) :])
        return len(moved)

    async def _move_one(self, task: Task, delivery: Delivery) -> None:
        opened, record = delivery.opened, delivery.record
        origin = origin_of(record.headers)
        target = task.destination or (None if origin is None else origin.topic)
        if target is None:
            raise invalid_value(
                f"The message at {opened.topic}-{opened.partition} {opened.offset} does"
                " not say where it came from; name a destination."
            )
        copy = NewRecord(record.value, record.key, headers=without_marks(record.headers))
        (outcome,) = await self._publisher.publish_all(target, [copy])
        if isinstance(outcome, Exception):
            raise invalid_value(f"{target} does not take messages: {outcome}")


def _handle(call: Call, task: Task) -> str:
    content = {"taskId": task.id, "sourceArn": call.arn(task.source)}
    return base64.b64encode(json.dumps(content).encode()).decode()


def _listed(call: Call, task: Task) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Status": task.state,
        "SourceArn": call.arn(task.source),
        "ApproximateNumberOfMessagesMoved": task.moved,
        "ApproximateNumberOfMessagesToMove": task.to_move,
        "StartedTimestamp": task.started_ms,
    }
    if task.state == RUNNING:
        found["TaskHandle"] = _handle(call, task)
    if task.destination is not None:
        found["DestinationArn"] = call.arn(task.destination)
    if task.per_second is not None:
        found["MaxNumberOfMessagesPerSecond"] = task.per_second
    if task.state == FAILED:
        found["FailureReason"] = task.reason or "The gateway that ran the task is gone."
    return found
