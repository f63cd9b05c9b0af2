"""Where DescribeConfigs differs from Apache Kafka 4.3, and why.

A test compares the whole responses. It fails on a difference that is not listed here, and on a
listed one that does not exist.
"""

from typing import Final

DEFAULTS: Final = {
    "broker.heartbeat.interval.ms": "a returning broker is noticed sooner",
    "controller.quorum.election.timeout.ms": "fewer needless elections on a busy machine",
    "controller.quorum.fetch.timeout.ms": "fewer needless elections on a busy machine",
    "default.replication.factor": "with one copy, losing its disk loses acknowledged records",
    "leader.imbalance.check.interval.seconds": "leadership returns to preferred replicas sooner",
    "listeners": "by default, only this machine can connect",
    "log.dir": "unset; `log.dirs` is `data`, not a directory in `/tmp`",
    "log.dirs": "`data`, not a directory in `/tmp`",
    "node.id": "defaults to 1; Kafka requires it",
    "queued.max.request.bytes": "bounds memory",
    "sasl.enabled.mechanisms": "GSSAPI is not supported",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI is not supported",
    "security.inter.broker.protocol": "unset: brokers use the first listener",
    "socket.listen.backlog.size": "many clients may reconnect at once",
    "socket.receive.buffer.bytes": "the operating system tunes it",
    "ssl.keystore.type": "only PEM is supported",
    "ssl.truststore.type": "only PEM is supported",
    "transaction.two.phase.commit.enable": "the exactly-once Spark sink needs it",
}
DYNAMIC_ONLY_HERE: Final = (
    "auto.create.topics.enable",
    "default.replication.factor",
    "delete.topic.enable",
    "num.partitions",
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
DYNAMIC_ONLY_IN_KAFKA: Final = (
    "listener.security.protocol.map",
    "listeners",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
)
TYPES: Final = {
    "ssl.keystore.certificate.chain": "string, because certificates are public",
    "ssl.truststore.certificates": "string, because certificates are public",
}
# Keys of topics and groups whose broker synonym differs from Kafka's.
SYNONYMS: Final = {
    "share.auto.offset.reset": "Ottla has a broker-level default",
    "share.isolation.level": "Ottla has a broker-level default",
    "share.renew.acknowledge.enable": "Ottla has a broker-level default",
}


_APIS = """
## ApiVersions and features

A test compares the whole response with Apache Kafka's. The differences:

- ApiVersions goes up to v5 and TxnOffsetCommit up to v6, as in Kafka 4.4.
- InitProducerId goes up to v6 if two-phase commit is on, which is the default here
  (`transaction.two.phase.commit.enable`). Kafka 4.3 reports v5.
- Ottla's own APIs are listed, and the [unsupported APIs](#unsupported-apis) are not.
- `eligible.leader.replicas.version` cannot be 0, because Ottla allows empty in-sync sets from the
  start. `metadata.version` is Kafka 4.3's and, like `kraft.version`, cannot be lowered.

Requests between brokers, such as Vote, AlterPartition and BrokerHeartbeat, are not listed, as on
Kafka's client listeners. Every listener accepts them from principals that may act as a node.
"""

_SHARE_GROUPS = """
## Share groups

Acknowledgements, including those of gaps, are accepted and rejected as in Kafka 4.3, and lag is
computed the same way. As in Kafka 4.3, racks are ignored: the assignor does not consider them,
ShareFetch has no rack, and records are always fetched from the leader. The differences:

- Transaction markers, and offsets that compaction removed between two batches, are never delivered.
  In Kafka, consumers acquire them along with the records around them and acknowledge them as gaps.
- A partition has a start offset after the first fetch, and an acknowledgement advances it at once.
  In Kafka it has one after the first acknowledgement, and the next acknowledgement advances it.
- The first heartbeat of a new group is answered with epoch 3 instead of 2, because Ottla answers
  once the state of the group's partitions is initialized.
"""


_RECORDS = """
## Record validation

Ottla always checks the checksum and header of a batch, and on compacted topics the keys. Kafka also
reads every record. In Ottla, set `record.validation.enable` on a topic, or on the brokers for all
topics, to do the same. It is off by default because it costs more than the rest of a produce
request: the header of a batch takes 0.8 to 1.7 us, and each record adds 2 to 6 us (33 us for 16
records of 1,000 bytes, 0.95 ms for 150 of 100 bytes; CPython 3.11, uncompressed, best of 25 runs
on a busy machine). Without it, a batch that cannot be read is found by consumers, which validate
what they fetch and stop at its offset. With it, unreadable records are rejected with
INVALID_RECORD, as in Kafka, with two exceptions: Kafka returns UNKNOWN_SERVER_ERROR for damaged
compressed data, and accepts some wrong offsets and lengths.
"""

_TOOLS = """
## Tools

Kafka's command-line tools that need no security were run side by side on both. Error codes are
Kafka's, and so are most messages that refuse a config value; the others are Ottla's own. It differs
in this:

- Numbers of threads, which have no effect here, can be altered to any value; Kafka lets a running
  broker double or halve them at most.
- A running broker cannot be unregistered. In Kafka it can, and clients cannot use it from then on.
- Fetch lists aborted transactions in the order in which they began; Kafka in that of their ends.
- WriteTxnMarkers into `__transaction_state` is INVALID_TOPIC_EXCEPTION; Kafka writes them.
- Producer ids begin at a random number chosen for the cluster; Kafka's begin at 0.
- For some time after a change, members of consumer, share and streams groups are told to send
  heartbeats every 200 ms (`group.consumer.rebalance.heartbeat.interval.ms` and the like), so that
  partitions change hands sooner. In Kafka the interval is always the same.
- Small groups do not wait for `group.consumer.assignment.interval.ms` and the like before a new
  assignment, so the epochs of their members can be ahead of Kafka's.
- Members of consumer groups that subscribe with a regular expression begin with epoch 2 instead of
  1, because the topics are looked up at once.
- Refused JoinGroup and StreamsGroupHeartbeat requests get their member id back in the response, and
  a streams group without problems has a null status instead of an empty one.
- UNSUPPORTED_VERSION and NOT_COORDINATOR come with a message; in Kafka it is null.
"""


def differences() -> str:
    """The sections of docs/compatibility.md that list them."""
    defaults = "".join(f"| `{name}` | {why} |\n" for name, why in sorted(DEFAULTS.items()))
    return (
        _APIS
        + _SHARE_GROUPS
        + _RECORDS
        + _TOOLS
        + f"""
## Configs

Ottla accepts every broker key of Kafka 4.3; [Configuration](config.md) lists those that have no
effect. A test compares the whole DescribeConfigs response with Apache Kafka's: keys, types,
defaults, synonyms, and which keys are dynamic. The differences:

Other defaults:

| key | why |
| --- | --- |
{defaults}
Dynamic only in Ottla: {_names(DYNAMIC_ONLY_HERE)}.

Dynamic only in Kafka: {_names(DYNAMIC_ONLY_IN_KAFKA)}. Ottla reloads certificates when their files
change.

Of another type: {_reasons(TYPES)}.

With another synonym: {_reasons(SYNONYMS)}.

- Ottla has keys of its own.
- `min.insync.replicas` is a dynamic default only after it has been set for the cluster. Kafka sets
  it when a cluster is created.
- A topic key whose default comes from a key such as `log.retention.hours` lists it as a synonym.
  Kafka lists none.
- Ranges of values are Kafka's. Where Kafka has none, Ottla rejects values that make no sense, such
  as negative timeouts and buffer sizes. It also rejects 0 for `max.connection.creation.rate`,
  `replica.fetch.backoff.ms`, `log.flush.offset.checkpoint.interval.ms` and
  `log.flush.start.offset.checkpoint.interval.ms`. Values of keys without effect are checked for
  their type only.
"""
    )


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _reasons(reasons: dict[str, str]) -> str:
    return "; ".join(f"`{name}` ({why})" for name, why in reasons.items())
