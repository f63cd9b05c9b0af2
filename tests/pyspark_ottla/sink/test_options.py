import pytest

from ottla.records.compression import Compression
from pyspark_ottla.options import OptionError
from pyspark_ottla.sink.options import Delivery, SinkOptions, parse_sink_options, validate_mode

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def stream(**options: str) -> SinkOptions:
    return parse_sink_options({**SERVERS, **options}, is_stream=True)


def batch(**options: str) -> SinkOptions:
    return parse_sink_options({**SERVERS, **options}, is_stream=False)


def test_a_stream_is_exactly_once_and_a_batch_at_least_once() -> None:
    assert stream(sinkid="a").delivery is Delivery.EXACTLY_ONCE
    assert batch().delivery is Delivery.AT_LEAST_ONCE
    assert stream(delivery="at_least_once").delivery is Delivery.AT_LEAST_ONCE


def test_exactly_once_needs_a_name() -> None:
    with pytest.raises(OptionError, match=r"sinkId is missing.*stays the same when the query"):
        stream()


def test_a_batch_write_exactly_once_needs_a_number() -> None:
    options = batch(delivery="exactly_once", sinkid="a", batchid="7")
    assert (options.sink_id, options.batch_id) == ("a", 7)
    with pytest.raises(OptionError, match=r"batchId is missing.*foreachBatch"):
        batch(delivery="exactly_once", sinkid="a")
    with pytest.raises(OptionError, match="must be at least 0"):
        batch(delivery="exactly_once", sinkid="a", batchid="-1")


@pytest.mark.parametrize("name", ["a.b", "a b", "ä", "a" * 101, "a/b"])
def test_names_of_sinks_are_bounded(name: str) -> None:
    with pytest.raises(OptionError, match=r"sinkId is .*1 to 100 letters, digits, '_' and '-'"):
        stream(sinkid=name)
    assert stream(sinkid="a" * 100).sink_id == "a" * 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sinkdi": "a"}, "did you mean sinkId"),
        ({"compresion": "lz4"}, "did you mean compression"),
        ({"sinkid": "a", "topic": "a b"}, "at most 249 letters"),
        ({"sinkid": "a", "compression": "brotli"}, "not one of none, gzip, snappy, lz4, zstd"),
        ({"sinkid": "a", "delivery": "twice"}, "not one of exactly_once, at_least_once"),
        ({"sinkid": "a", "delivery": "at_least_once"}, "sinkId has no meaning"),
        ({"sinkid": "a", "batchid": "1"}, "batchId is for batch writes"),
        (
            {"sinkid": "a", "compression": "lz4", "kafka.compression.type": "lz4"},
            "exclude each other",
        ),
        (
            {"sinkid": "a", "kafka.sasl.mechanism": "PLAIN"},
            "no meaning with kafka.security.protocol=PLAINTEXT",
        ),
    ],
)
def test_bad_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        stream(**options)


def test_the_codec_by_sparks_name_or_kafkas() -> None:
    assert stream(sinkid="a").compression is Compression.NONE
    assert stream(sinkid="a", compression="ZSTD").compression is Compression.ZSTD
    assert stream(sinkid="a", **{"kafka.compression.type": "lz4"}).compression is Compression.LZ4


def test_a_topic_is_not_overwritten() -> None:
    validate_mode(overwrite=False)
    with pytest.raises(OptionError, match="mode append"):
        validate_mode(overwrite=True)
