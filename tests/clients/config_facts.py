"""Apache Kafka 4.3.1's DescribeConfigs response for a topic and a group that set nothing."""

from typing import NamedTuple


class Fact(NamedTuple):
    type: int
    default: str | None
    synonym: str | None  # The key that the default comes from, if shown.


TOPIC_FACTS = {
    "cleanup.policy": Fact(7, "delete", "log.cleanup.policy"),
    "compression.gzip.level": Fact(3, "-1", "compression.gzip.level"),
    "compression.lz4.level": Fact(3, "9", "compression.lz4.level"),
    "compression.type": Fact(2, "producer", "compression.type"),
    "compression.zstd.level": Fact(3, "3", "compression.zstd.level"),
    "delete.retention.ms": Fact(5, "86400000", "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": Fact(5, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": Fact(5, "9223372036854775807", "log.flush.interval.messages"),
    "flush.ms": Fact(5, "9223372036854775807", None),
    "follower.replication.throttled.replicas": Fact(7, "", None),
    "index.interval.bytes": Fact(3, "4096", "log.index.interval.bytes"),
    "leader.replication.throttled.replicas": Fact(7, "", None),
    "local.retention.bytes": Fact(5, "-2", "log.local.retention.bytes"),
    "local.retention.ms": Fact(5, "-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": Fact(5, "9223372036854775807", "log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": Fact(3, "1048588", "message.max.bytes"),
    "message.timestamp.after.max.ms": Fact(5, "3600000", "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": Fact(
        5, "9223372036854775807", "log.message.timestamp.before.max.ms"
    ),
    "message.timestamp.type": Fact(2, "CreateTime", "log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": Fact(6, "0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": Fact(5, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": Fact(3, "1", "min.insync.replicas"),
    "preallocate": Fact(1, "false", "log.preallocate"),
    "remote.log.copy.disable": Fact(1, "false", None),
    "remote.log.delete.on.disable": Fact(1, "false", None),
    "remote.storage.enable": Fact(1, "false", None),
    "retention.bytes": Fact(5, "-1", "log.retention.bytes"),
    "retention.ms": Fact(5, "604800000", None),
    "segment.bytes": Fact(3, "1073741824", "log.segment.bytes"),
    "segment.index.bytes": Fact(3, "10485760", "log.index.size.max.bytes"),
    "segment.jitter.ms": Fact(5, "0", None),
    "segment.ms": Fact(5, "604800000", None),
    "unclean.leader.election.enable": Fact(1, "false", "unclean.leader.election.enable"),
}
GROUP_FACTS = {
    "consumer.assignment.interval.ms": Fact(3, "1000", "group.consumer.assignment.interval.ms"),
    "consumer.heartbeat.interval.ms": Fact(3, "5000", "group.consumer.heartbeat.interval.ms"),
    "consumer.session.timeout.ms": Fact(3, "45000", "group.consumer.session.timeout.ms"),
    "share.assignment.interval.ms": Fact(3, "1000", "group.share.assignment.interval.ms"),
    "share.auto.offset.reset": Fact(2, "latest", "share.auto.offset.reset"),
    "share.delivery.count.limit": Fact(3, "5", "group.share.delivery.count.limit"),
    "share.heartbeat.interval.ms": Fact(3, "5000", "group.share.heartbeat.interval.ms"),
    "share.isolation.level": Fact(2, "read_uncommitted", "share.isolation.level"),
    "share.partition.max.record.locks": Fact(3, "2000", "group.share.partition.max.record.locks"),
    "share.record.lock.duration.ms": Fact(3, "30000", "group.share.record.lock.duration.ms"),
    "share.renew.acknowledge.enable": Fact(1, "true", "share.renew.acknowledge.enable"),
    "share.session.timeout.ms": Fact(3, "45000", "group.share.session.timeout.ms"),
    "streams.assignment.interval.ms": Fact(3, "1000", "group.streams.assignment.interval.ms"),
    "streams.heartbeat.interval.ms": Fact(3, "5000", "group.streams.heartbeat.interval.ms"),
    "streams.initial.rebalance.delay.ms": Fact(
        3, "3000", "group.streams.initial.rebalance.delay.ms"
    ),
    "streams.num.standby.replicas": Fact(3, "0", "group.streams.num.standby.replicas"),
    "streams.session.timeout.ms": Fact(3, "45000", "group.streams.session.timeout.ms"),
}
