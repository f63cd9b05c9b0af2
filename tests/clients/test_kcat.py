"""kcat, which uses a librdkafka from some years ago."""

import json
import shutil
import subprocess

import pytest
from tests.clients.client import CODECS, TIMEOUT_S, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import CreateTopic

KCAT = shutil.which("kcat") or shutil.which("kafkacat")

pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    assert KCAT is not None
    process = subprocess.run(
        [KCAT, "-b", bootstrap, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S * 2,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("codec", CODECS)
def test_it_reads_what_it_wrote(bootstrap: str, codec: str, topic: str) -> None:
    lines = "".join(f"key{number}:value{number}\n" for number in range(100))
    kcat(bootstrap, "-P", "-t", topic, "-K:", "-z", codec, stdin=lines)
    assert kcat(bootstrap, "-C", "-t", topic, "-e", "-q", "-K:") == lines


def test_headers_and_tombstones(bootstrap: str, topic: str) -> None:
    arguments = ("-P", "-t", topic, "-K:", "-Z", "-H", "a=1", "-H", "b=2")
    kcat(bootstrap, *arguments, stdin="key:\n")
    record = json.loads(kcat(bootstrap, "-C", "-t", topic, "-e", "-q", "-J"))
    assert record["headers"] == ["a", "1", "b", "2"]
    assert (record["key"], record["payload"]) == ("key", None)


def test_the_last_records(bootstrap: str, confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(value=b"%d" % number) for number in range(10)])
    assert kcat(bootstrap, "-C", "-t", topic, "-e", "-q", "-o", "-3") == "7\n8\n9\n"


def test_from_a_time(bootstrap: str, confluent: ConfluentClient, topic: str) -> None:
    times = [1_700_000_000_000 + 1000 * number for number in range(5)]
    confluent.produce(topic, [Sent(value=b"%d" % t, timestamp_ms=t) for t in times])
    output = kcat(bootstrap, "-C", "-t", topic, "-e", "-q", "-o", f"s@{times[3] - 1}")
    assert output == f"{times[3]}\n{times[4]}\n"


def test_metadata(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic(partitions=3)
    document = json.loads(kcat(bootstrap, "-L", "-J", "-t", topic))
    assert [found["topic"] for found in document["topics"]] == [topic]
    assert len(document["topics"][0]["partitions"]) == 3
    assert document["brokers"][0]["name"].endswith(bootstrap[bootstrap.index(":") :])


def test_the_offset_of_a_time(bootstrap: str, confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(timestamp_ms=1000 * (number + 1)) for number in range(5)])
    output = kcat(bootstrap, "-Q", "-t", f"{topic}:0:2500")
    assert output.strip().endswith("offset 2")
