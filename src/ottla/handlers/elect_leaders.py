"""ElectLeaders (43): v0-v2.

Moves leadership to the first replica of partitions, or elects a leader that is not in sync.

v1  unclean elections (KIP-460); an error for the whole request
v2  flexible
"""

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

from ottla.handlers.controller_calls import call_controller_with
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER)


def error_response(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    return refused(
        ElectLeadersResponse,
        error,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    refused(PartitionResult, error, partition_id=index)
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )
