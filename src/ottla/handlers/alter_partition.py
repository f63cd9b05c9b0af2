"""AlterPartition (56): v2-v3.

A partition's leader reports to the controller who is in sync.

v2  topics by id
v3  the epochs of the brokers in the in-sync set (KIP-903)
"""

from collections.abc import Awaitable

from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition.v3.response import AlterPartitionResponse

from ottla.handlers.broker import Broker, RequestContext


def handle(
    broker: Broker, _: RequestContext, request: AlterPartitionRequest
) -> Awaitable[AlterPartitionResponse]:
    return broker.controller.call(request)
