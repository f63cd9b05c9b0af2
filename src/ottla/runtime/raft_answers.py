"""Answers other replicas, adding the bytes of the log or snapshot that an answer refers to.

Cached data, which is nearly all of it, is read at once; the rest in a thread.
"""

from asyncio import Future
from collections.abc import Callable
from typing import Any

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    LogRange,
    Message,
    SnapshotRange,
)
from ottla.runtime.process import Process
from ottla.runtime.raft_exchange import RaftExchange
from ottla.runtime.raft_log import RaftLog
from ottla.storage.errors import NotCached, StorageError


@dataclass(slots=True, eq=False)
class RaftAnswers:
    log: RaftLog
    exchange: RaftExchange
    process: Process

    def send(self, message: Message) -> None:
        reply = self.exchange.take_reply(message)
        body = message.body
        if reply.done():
            return  # The requester no longer waits.
        if isinstance(body, FetchResponse) and isinstance(body.records, LogRange):
            self._send_records(reply, body, body.records)
        elif isinstance(body, FetchSnapshotResponse) and isinstance(
            body.unaligned_records, SnapshotRange
        ):
            self._send_snapshot(reply, body, body.unaligned_records)
        else:
            reply.set_result(body)

    def _send_records(self, reply: "Future[Any]", body: FetchResponse, wanted: LogRange) -> None:
        log, truncations_count = self.log, self.log.truncations_count
        arguments = wanted.start_offset, wanted.max_bytes, wanted.end_offset
        try:
            read = log.read_cached(*arguments)
        except NotCached:
            reading = self.process.in_thread(lambda: log.read(*arguments).data)

            def fill(data: bytes) -> FetchResponse:
                if truncations_count != log.truncations_count:
                    raise ApiError(ErrorCode.not_leader_or_follower, "the log was truncated")
                return body._replace(records=data)

            _pass_on(reading, reply, fill)
        except (StorageError, ApiError) as error:
            reply.set_exception(ApiError(ErrorCode.kafka_storage_error, str(error)))
        else:
            reply.set_result(body._replace(records=read.data))

    def _send_snapshot(
        self, reply: "Future[Any]", body: FetchSnapshotResponse, wanted: SnapshotRange
    ) -> None:
        snapshots = self.log.snapshots
        reading = self.process.in_thread(
            lambda: snapshots.read_range(wanted.snapshot_id, wanted.position, wanted.max_bytes)
        )
        _pass_on(reading, reply, lambda data: body._replace(unaligned_records=data))


def _pass_on(
    reading: "Future[bytes]", reply: "Future[Any]", fill: Callable[[bytes], object]
) -> None:
    def on_read(done: "Future[bytes]") -> None:
        if reply.done() or done.cancelled():
            return
        try:
            reply.set_result(fill(done.result()))
        except (StorageError, OSError) as error:
            reply.set_exception(ApiError(ErrorCode.kafka_storage_error, str(error)))
        except ApiError as error:
            reply.set_exception(error)

    reading.add_done_callback(on_read)
