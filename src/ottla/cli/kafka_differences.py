"""Where DescribeConfigs answers otherwise than Apache Kafka 4.3, each with its reason.

A test compares the whole answers: a difference that is not here fails it, and so does one that is
here and is none.
"""

from typing import Final

DEFAULTS: Final = {
    "broker.heartbeat.interval.ms": "a broker that is back is seen sooner",
    "controller.quorum.election.timeout.ms": "elections wait longer on a busy machine",
    "controller.quorum.fetch.timeout.ms": "elections wait longer on a busy machine",
    "default.replication.factor": "one copy loses acknowledged records with its disk",
    "leader.imbalance.check.interval.seconds": "leaders move back sooner",
    "listeners": "only this machine can connect unless somebody says otherwise",
    "log.dir": "the directory is `data` (`log.dirs`), not one below `/tmp`",
    "log.dirs": "the directory is `data`, not one below `/tmp`",
    "node.id": "has a default, 1",
    "queued.max.request.bytes": "memory is bounded",
    "sasl.enabled.mechanisms": "there is no GSSAPI",
    "sasl.mechanism.inter.broker.protocol": "there is no GSSAPI",
    "security.inter.broker.protocol": "unset: the first listener is used",
    "socket.listen.backlog.size": "many clients may come back at once",
    "socket.receive.buffer.bytes": "the operating system adapts it",
    "ssl.keystore.type": "only PEM is read",
    "ssl.truststore.type": "only PEM is read",
    "transaction.two.phase.commit.enable": "the exactly-once sink of Spark needs it",
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
    "ssl.keystore.certificate.chain": "a string: certificates are public",
    "ssl.truststore.certificates": "a string: certificates are public",
}
# Keys of topics and groups whose broker synonym is another one than in Kafka.
SYNONYMS: Final = {
    "share.auto.offset.reset": "brokers have a default of it",
    "share.isolation.level": "brokers have a default of it",
    "share.renew.acknowledge.enable": "brokers have a default of it",
}


_APIS = """
## ApiVersions and features

A test compares the whole answer with Apache Kafka's, and the answer differs in this:

- InitProducerId is told up to v6 where two-phase commit is on, which is the default here
  (`transaction.two.phase.commit.enable`); Kafka 4.3 tells up to v5.
- APIs of Ottla's own are told, and those that are listed below as not served are not.
- `eligible.leader.replicas.version` cannot be 0: in-sync sets may be empty here from the beginning.
  `metadata.version` is that of Kafka 4.3 and, like `kraft.version`, cannot be lowered.
- Requests of brokers among themselves (such as Vote, AlterPartition, BrokerHeartbeat) are served on
  every listener to who may act as a node, and told to nobody, as on Kafka's listeners for clients.
- ApiVersions v5 and TxnOffsetCommit v6 are of Kafka 4.4 and not there.
"""

_SHARE_GROUPS = """
## Share groups

Acknowledgements, of gaps too, are taken and refused as in Kafka 4.3, and lag is what Kafka tells.
Racks play no part, as in Kafka 4.3: the assignor does not look at them, ShareFetch names none, and
records come from the leader of a partition. It differs in this:

- Transaction markers, and what compaction took away between two batches, are not handed out. In
  Kafka consumers acquire them with the records beside them, and acknowledge them as gaps.
- The start offset of a partition is told from the first fetch on, and moves with the
  acknowledgement that ends what lies before it. In Kafka it is told from the first acknowledgement
  on, and moves with the next one.
"""


_RECORDS = """
## Records that are produced

Checksum and header of a batch are checked always, and keys on compacted topics. Kafka also reads
every record. Here a topic, or a broker for all topics, has to ask for that
(`record.validation.enable`), for it costs more than the rest of a produce request. The header of a
batch takes 0.8 to 1.7 us, and each record another 2 to 6 us: 33 us for 16 records of 1,000 bytes,
0.95 ms for 150 of 100 bytes (CPython 3.11, uncompressed, best of 25 runs on a busy machine).
Consumers check what they read; a batch that cannot be read stops them at its offset. With it,
records that cannot be read are INVALID_RECORD, as in Kafka, except that Kafka answers
UNKNOWN_SERVER_ERROR to compressed bytes that are damaged, and takes some wrong offsets and lengths.
"""


def differences() -> str:
    """The part of docs/compatibility.md that lists them."""
    defaults = "".join(f"| `{name}` | {why} |\n" for name, why in sorted(DEFAULTS.items()))
    return (
        _APIS
        + _SHARE_GROUPS
        + _RECORDS
        + f"""
## Configs

Every broker key of Kafka 4.3 is known; [Configuration](config.md) lists those without effect. A
test compares DescribeConfigs whole with Apache Kafka's (keys, types, defaults, synonyms, what can
be altered at run time). It differs in this:

Other defaults:

| key | why |
| --- | --- |
{defaults}
Can be altered at run time only here: {_names(DYNAMIC_ONLY_HERE)}.

Can be altered at run time only in Kafka (here certificates are read again when their files change):
{_names(DYNAMIC_ONLY_IN_KAFKA)}.

Of another type: {_reasons(TYPES)}.

With another synonym: {_reasons(SYNONYMS)}.

- Ottla has keys of its own.
- `min.insync.replicas` is shown as a dynamic default once it was set for the cluster; Kafka sets it
  when a cluster begins.
- A topic key whose default comes from `log.retention.hours` and the like has that as its synonym;
  Kafka shows none.
"""
    )


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _reasons(reasons: dict[str, str]) -> str:
    return "; ".join(f"`{name}`, {why}" for name, why in reasons.items())
