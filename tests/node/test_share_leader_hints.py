"""Who asks the wrong broker for records of a share group is told the right one (KIP-951)."""

from kio.schema.share_acknowledge.v2 import request as acknowledge_v2
from tests.clients.test_share_wire import Member
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.testing import EmbeddedCluster


def test_a_broker_that_does_not_lead_a_partition_names_its_leader() -> None:
    with EmbeddedCluster(2) as cluster:
        topic = cluster.topic("orders")
        leader = cluster.leader(topic)
        addresses = dict(zip(cluster.node_ids, cluster.bootstrap_servers.split(","), strict=True))
        (other,) = set(addresses) - {leader}
        with Wire(addresses[other]) as wire:
            member = Member(wire, "group", topic)

            for answer in (
                member.fetch(),
                member.acknowledge(acknowledge_v2, 0, 0, 1, is_renew_ack=False),
            ):
                ((partition,),) = (each.partitions for each in answer.responses)
                (endpoint,) = answer.node_endpoints
                assert partition.error_code is ErrorCode.not_leader_or_follower
                assert partition.current_leader.leader_id == leader
                assert partition.current_leader.leader_epoch >= 0
                assert endpoint.node_id == leader
                assert f"{endpoint.host}:{endpoint.port}" == addresses[leader]
