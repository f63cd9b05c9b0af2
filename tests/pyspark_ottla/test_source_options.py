import pytest

from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation
from ottla.protocol.topics import TopicPartition
from pyspark_ottla.options import OptionError
from pyspark_ottla.positions import AtEnd, AtOffsets, AtTimes
from pyspark_ottla.source_options import SourceOptions, Use, parse_source_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def parse(use: Use | None = Use.BATCH, **options: str) -> SourceOptions:
    return parse_source_options(SERVERS | {"subscribe": "t"} | options, use)


def parse_dotted(name: str, value: str, use: Use = Use.BATCH) -> SourceOptions:
    return parse_source_options(SERVERS | {"subscribe": "t", name: value}, use)


def test_defaults() -> None:
    batch, stream = parse(Use.BATCH), parse(Use.STREAM)
    assert (batch.start, batch.end) == (AtEnd(EARLIEST), AtEnd(LATEST))
    assert stream.start == AtEnd(LATEST)
    assert batch.isolation is Isolation.READ_UNCOMMITTED
    assert batch.fail_on_data_loss
    assert not batch.include_headers
    assert list(batch.subscription.topics) == ["t"]


def test_names_are_of_any_case_and_values_as_they_are() -> None:
    options = parse_source_options(
        {"KAFKA.Bootstrap.Servers": "h:1", "subscribepattern": "A.*", "INCLUDEHEADERS": "True"}
    )
    assert options.cluster.bootstrap_servers == "h:1"
    assert options.subscription.pattern == "A.*"
    assert options.include_headers


def test_everything_given() -> None:
    options = parse(
        Use.STREAM,
        startingOffsets='{"t": {"0": 5, "1": -1}}',
        maxOffsetsPerTrigger="100",
        minPartitions="7",
        failOnDataLoss="false",
        commitGroup="g",
    )
    partition = TopicPartition("t", 0)
    assert options.start == AtOffsets({partition: 5, TopicPartition("t", 1): -1}, "startingOffsets")
    assert options.max_offsets_per_trigger == 100
    assert options.min_partitions == 7
    assert not options.fail_on_data_loss
    assert options.commit_group == "g"


def test_settings_of_the_client() -> None:
    assert parse_dotted("kafka.isolation.level", "read_committed").isolation == 1
    assert parse_dotted("kafka.client.id", "me").cluster.client_id == "me"
    assert parse_dotted("kafka.request.timeout.ms", "5").cluster.request_timeout_ms == 5
    assert parse_dotted("kafka.default.api.timeout.ms", "6").cluster.retry_timeout_ms == 6
    assert parse_dotted("kafka.security.protocol", "PLAINTEXT")


def test_times() -> None:
    times = {TopicPartition("t", 0): 1000}
    assert parse(startingTimestamp="5").start == AtTimes(None, 5, "startingTimestamp", False)
    by_partition = parse(
        startingOffsetsByTimestamp='{"t": {"0": 1000}}',
        startingOffsetsByTimestampStrategy="latest",
        endingOffsetsByTimestamp='{"t": {"0": 1000}}',
    )
    assert by_partition.start == AtTimes(times, None, "startingOffsetsByTimestamp", True)
    assert by_partition.end == AtTimes(times, None, "endingOffsetsByTimestamp", True)
    assert parse(endingTimestamp="5").end == AtTimes(None, 5, "endingTimestamp", True)


def test_assigned_partitions() -> None:
    options = parse_source_options(SERVERS | {"assign": '{"a": [0, 2], "b": [1]}'})
    partitions = {TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)}
    assert set(options.subscription.partitions) == partitions


def test_the_offset_of_a_querys_progress_is_a_start() -> None:
    options = parse(startingOffsets='{"t": {"0": 5}, "@ids": {"t": "x"}}')
    assert options.start == AtOffsets({TopicPartition("t", 0): 5}, "startingOffsets")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"failOnDataloss": "maybe"}, "failOnDataLoss is 'maybe' and not one of true, false"),
        ({"subscribePattern": "x"}, "subscribe and subscribePattern exclude each other"),
        ({"startingTimestamp": "1", "startingOffsets": "latest"}, "exclude each other"),
        ({"endingTimestamp": "1", "endingOffsets": "latest"}, "exclude each other"),
        ({"startingOffsets": "latest"}, "nothing for a batch query"),
        ({"startingOffsets": "x"}, "startingOffsets is not JSON"),
        ({"startingOffsets": "[]"}, "not a JSON object"),
        ({"startingOffsets": '{"t": [1]}'}, "not like"),
        ({"startingOffsets": '{"t": {"a": 1}}'}, "not like"),
        ({"startingOffsets": '{"t": {"0": 1.5}}'}, "not like"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "not like"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "-1, for latest"),
        ({"endingOffsets": "earliest"}, "nothing to read"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "-2, for earliest"),
        ({"startingOffsetsByTimestampStrategy": "latest"}, "needs startingTimestamp"),
        ({"maxOffsetsPerTrigger": "5"}, "is for streaming queries"),
        ({"commitGroup": "g"}, "is for streaming queries"),
        ({"minPartitions": "0"}, "at least 1"),
        ({"minPartitions": "many"}, "not a number"),
        ({"startingTimestamp": "yesterday"}, "not a number"),
        ({"includeHeaders": " "}, "is empty"),
        ({"kafka.isolation.level": "serializable"}, "not one of read_uncommitted, read_committed"),
        ({"kafka.security.protocol": "SASL_SSL"}, "there are PLAIN, SCRAM-SHA-256"),
        ({"kafka.sasl.jaas.config": "..."}, "no meaning with kafka.security.protocol"),
        ({"kafka.ssl.cipher.suites": "..."}, "of TLS there are"),
        ({"kafka.group.id": "g"}, "commitGroup"),
        ({"kafka.auto.offset.reset": "earliest"}, "give startingOffsets instead"),
        ({"kafka.fetch.min.bytes": "1"}, "no meaning here"),
        ({"minOffsetsPerTrigger": "1"}, "did you mean maxOffsetsPerTrigger?"),
        ({"fetchOffset.numRetries": "1"}, "kafka.default.api.timeout.ms"),
        ({"valueFormat": "xml"}, "not one of binary, string, json, avro"),
        ({"valueFormat": "avro"}, "needs option valueSchema"),
        ({"valueFormat": "string", "valueSchema": "a int"}, "no meaning with valueFormat=string"),
        ({"valueSchema": "a int"}, "no meaning with valueFormat=binary"),
        ({"valueMode": "permissive"}, "no meaning without valueFormat"),
        ({"valueFormat": "json", "valueMode": "x"}, "not one of failfast, permissive"),
        ({"colour": "blue"}, "there is no option colour; there are assign"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        parse_source_options(SERVERS | {"subscribe": "t"} | options, Use.BATCH)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match="a stream has no end"):
        parse(Use.STREAM, **{name: "latest"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers is missing"),
        (
            {"kafka.bootstrap.servers": "a:b", "subscribe": "t"},
            "'a:b' is not of the form",
        ),
        (SERVERS, "one of the options subscribe, subscribePattern, assign is missing"),
        (SERVERS | {"subscribePattern": "("}, "not a regular expression"),
        (SERVERS | {"assign": '{"a": 1}'}, "not like"),
        (SERVERS | {"assign": '{"a": [-1]}'}, "not like"),
    ],
)
def test_what_every_read_needs(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_source_options(options)
