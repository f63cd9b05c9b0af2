"""AddOffsetsToTxn (25): v0-v4.

Adds the partition of `__consumer_offsets` for a group to a producer's transaction, before the
group's offsets are committed with TxnOffsetCommit.

v2  PRODUCER_FENCED (KIP-588)
v3  flexible
v4  TRANSACTION_ABORTABLE (KIP-890)
"""

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_offsets_to_txn.v4.response import AddOffsetsToTxnResponse

from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.internal_topics import create_internal_topic
from ottla.handlers.transaction_calls import fenced_code
from ottla.handlers.transactional_writes import Write, add_to_transaction
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.transaction import Producer

_FENCED_SINCE = 2


async def handle(
    broker: Broker, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    require(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    code = ErrorCode.none
    try:
        await _add(broker, request)
    except ApiError as error:
        code = fenced_code(error.code, context.api_version, since=_FENCED_SINCE)
    return AddOffsetsToTxnResponse(throttle_time=NO_THROTTLE, error_code=code)


async def _add(broker: Broker, request: AddOffsetsToTxnRequest) -> None:
    groups = broker.groups
    partition = groups.partition_of(request.group_id)
    if partition is None:
        await create_internal_topic(broker, groups.topic)
        partition = groups.partition_of(request.group_id)
        assert partition is not None
    write = Write(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        (TopicPartition(groups.topic, partition),),
    )
    await add_to_transaction(broker, write, client_version=0)
