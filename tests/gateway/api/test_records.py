import base64
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from kafka.partitioner.default import murmur2
from tests.broker_process import BrokerProcess
from tests.gateway.conftest import make_topic


def read_all(http: httpx.Client, topic: str, partitions: int = 2) -> list[dict[str, Any]]:
    found = []
    for partition in range(partitions):
        answer = http.get(f"/topics/{topic}/partitions/{partition}/records", params={"max": 10_000})
        assert answer.status_code == httpx.codes.OK, answer.text
        found += answer.json()["records"]
    return found


def test_one_record_of_any_content_type(http: httpx.Client, topic: str) -> None:
    answer = http.post(
        f"/topics/{topic}/records",
        params={"key": "k", "partition": 1, "timestamp": 5, "header": "a:b:c"},
        headers={"Content-Type": "image/png", "Ottla-Header-Colour": "red"},
        content=b"\x89PNG",
    )
    assert answer.json() == {"topic": topic, "partition": 1, "offset": 0, "timestamp": 5}
    (record,) = read_all(http, topic)
    assert record == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp": 5,
        "key": "k",
        "value_base64": base64.b64encode(b"\x89PNG").decode(),
        "headers": [{"name": "a", "value": "b:c"}, {"name": "colour", "value": "red"}],
    }


def test_by_headers_as_by_query(http: httpx.Client, topic: str) -> None:
    headers = {"Ottla-Key": "k", "Ottla-Partition": "1", "Ottla-Timestamp": "7", "Ottla-Acks": "1"}
    answer = http.post(f"/topics/{topic}/records", headers=headers, content=b"v")
    assert answer.json() == {"topic": topic, "partition": 1, "offset": 0, "timestamp": 7}


def test_a_json_object_is_one_record(http: httpx.Client, topic: str) -> None:
    http.post(f"/topics/{topic}/records", json={"item": "lamp"})
    (record,) = read_all(http, topic)
    assert json.loads(record["value"]) == {"item": "lamp"}


def test_a_json_array_is_a_batch_with_a_report_for_each(http: httpx.Client, topic: str) -> None:
    records = [
        {"value": "text", "key": "k", "partition": 0, "headers": [{"name": "a", "value": "b"}]},
        {"value": {"any": ["json", 1]}, "partition": 0, "timestamp": 9},
        {"value": None, "key": "k", "partition": 0},
        {"value_base64": "/w==", "key_base64": "/g==", "partition": 1, "headers": []},
    ]
    answer = http.post(f"/topics/{topic}/records", json=records)
    assert answer.status_code == httpx.codes.OK, answer.text
    reports = answer.json()["records"]
    assert [(item["partition"], item["offset"]) for item in reports] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
    ]
    found = read_all(http, topic)
    assert [item.get("value") for item in found] == ["text", '{"any":["json",1]}', None, None]
    assert found[0]["headers"] == [{"name": "a", "value": "b"}]
    assert found[1]["timestamp"] == 9
    assert (found[3]["key_base64"], found[3]["value_base64"]) == ("/g==", "/w==")


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([{"key": "a"}], "record 0: a record needs a value"),
        ([{"value": 1}, {"value": 1, "vlaue": 2}], "record 1: a record has no vlaue"),
        ([{"value": "a", "value_base64": "YQ=="}], "exclude each other"),
        ([{"value_base64": "?"}], "not base64"),
        ([{"value": 1, "partition": -1}], "partition is a whole number"),
        ([{"value": 1, "partition": True}], "partition is a whole number"),
        ([{"value": 1, "headers": [1]}], "a header is"),
        (["text"], "a record is an object"),
    ],
)
def test_a_wrong_batch_is_refused_whole(
    http: httpx.Client, topic: str, records: Any, reason: str
) -> None:
    answer = http.post(f"/topics/{topic}/records", json=records)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert reason in answer.json()["detail"]
    assert read_all(http, topic) == []


def test_ndjson_has_a_report_a_line_as_each_is_acknowledged(http: httpx.Client, topic: str) -> None:
    lines = [b'{"value": %d, "partition": 0}' % number for number in range(3_000)]
    lines[1_500] = b"not json"
    answer = http.post(
        f"/topics/{topic}/records",
        content=b"\n".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    reports = [json.loads(line) for line in answer.text.splitlines()]
    assert len(reports) == len(lines)
    assert reports.pop(1_500)["status"] == httpx.codes.BAD_REQUEST
    assert [report["offset"] for report in reports] == list(range(2_999))


def test_a_stream_is_answered_while_it_is_sent(http: httpx.Client, topic: str) -> None:
    """Each line is sent after the report of the one before was read."""
    url = httpx.URL(http.base_url)
    assert url.port is not None
    with socket.create_connection((url.host, url.port), timeout=240) as connection:
        head = f"POST /topics/{topic}/records HTTP/1.1\r\nHost: x\r\n"
        head += "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        file = connection.makefile("rb")
        for number in range(3):
            line = b'{"value": %d, "partition": 0}\n' % number
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            while not (report := file.readline()).startswith(b"{"):
                assert report
            assert json.loads(report)["offset"] == number
        connection.sendall(b"0\r\n\r\n")
        assert b"0\r\n" in file.readline() + file.readline() + file.readline()


def test_many_at_once(http: httpx.Client, topic: str) -> None:
    def publish(number: int) -> int:
        answer = http.post(f"/topics/{topic}/records?partition=0", content=b"%d" % number)
        return int(answer.json()["offset"])

    with ThreadPoolExecutor(16) as pool:
        offsets = list(pool.map(publish, range(300)))
    assert sorted(offsets) == list(range(300))
    values = [record["value"] for record in read_all(http, topic)]
    assert [values[offset] for offset in offsets] == [str(number) for number in range(300)]


def test_without_acknowledgement_there_is_no_offset(http: httpx.Client, topic: str) -> None:
    answer = http.post(f"/topics/{topic}/records?acks=0&partition=0", content=b"v")
    assert answer.json()["offset"] is None


def test_keys_go_where_other_clients_put_them(http: httpx.Client, bootstrap: str) -> None:
    name = make_topic(bootstrap, partitions=8)
    for key in ("anna", "bert", "caro"):
        answer = http.post(f"/topics/{name}/records?key={key}", content=b"v")
        assert answer.json()["partition"] == (murmur2(key.encode()) & 0x7FFFFFFF) % 8


def test_trace_context_and_delays_become_record_headers(
    http: httpx.Client, own_broker: BrokerProcess
) -> None:
    topic = make_topic(own_broker.bootstrap, delivery_delay_enable="true")
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    headers = {"traceparent": trace, "tracestate": "a=b", "Deliver-At": "2030-01-01T00:00:00Z"}
    http.post(f"/topics/{topic}/records", headers=headers, json=[{"value": 1}])
    http.post(f"/topics/{topic}/records", params={"deliver-after": "1.5"}, content=b"2")
    by_value = {
        record["value"]: {header["name"]: header["value"] for header in record["headers"]}
        for record in read_all(http, topic)
    }
    assert by_value["1"] == {
        "traceparent": trace,
        "tracestate": "a=b",
        "ottla-deliver-at": "1893456000000",
    }
    assert by_value["2"]["ottla-deliver-at"].isdecimal()


def test_a_delay_that_would_not_be_kept_is_refused(
    http: httpx.Client, own_broker: BrokerProcess, topic: str
) -> None:
    answer = http.post(f"/topics/{topic}/records?deliver-after=1", content=b"v")
    assert answer.status_code == httpx.codes.CONFLICT
    assert "delivery.delay.enable" in answer.json()["hint"]
    assert read_all(http, topic) == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("partition=x", "partition"),
        ("partition=99999999999", "partition"),
        ("timestamp=-1", "timestamp"),
        ("timestamp=0", "timestamp"),
        ("acks=2", "acks"),
        ("header=a", "header"),
        ("key=a&key_base64=YQ==", "not both"),
        ("deliver-after=nan", "deliver-after"),
        ("deliver-at=tomorrow", "deliver-at"),
        ("deliver-at=1&deliver-after=1", "not both"),
    ],
)
def test_wrong_parameters_are_told(http: httpx.Client, topic: str, query: str, reason: str) -> None:
    answer = http.post(f"/topics/{topic}/records?{query}", content=b"v")
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert reason in answer.json()["detail"]


def test_what_is_not_there_and_what_is_not_for_others(http: httpx.Client, topic: str) -> None:
    answer = http.post(f"/topics/{topic}/records?partition=7", content=b"v")
    assert (answer.status_code, answer.json()["error"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    answer = http.get("/topics/not-there/partitions/0/records?offset=0")
    assert (answer.status_code, answer.json()["error"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    for answer in (
        http.post("/topics/__gateway/records", content=b"v"),
        http.get("/topics/__gateway/partitions/0/records"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
    answer = http.post("/topics/no%20name/records", content=b"v")
    assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_TOPIC_EXCEPTION")


def test_a_body_that_is_too_large_is_refused(http: httpx.Client, topic: str) -> None:
    answer = http.post(f"/topics/{topic}/records", content=bytes(16 * 1024 * 1024 + 1))
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    answer = http.post(f"/topics/{topic}/records", content=bytes(8 * 1024 * 1024))
    assert (answer.status_code, answer.json()["error"]) == (413, "MESSAGE_TOO_LARGE")


def test_reading_from_an_offset_or_a_time_on(http: httpx.Client, topic: str) -> None:
    batch = [
        {"value": number, "partition": 0, "timestamp": 1 + 100 * number} for number in range(10)
    ]
    http.post(f"/topics/{topic}/records", json=batch)
    path = f"/topics/{topic}/partitions/0/records"

    def read(**query: object) -> Any:
        answer = http.get(path, params={key: str(value) for key, value in query.items()})
        return [int(record["value"]) for record in answer.json()["records"]], answer.json()

    assert read(offset=3, max=2)[0] == [3, 4]
    assert read(offset=3, max=2)[1]["next_offset"] == 5
    assert read(time=450, max=1)[0] == [5]
    assert read(time=450_000)[0] == []
    assert read()[0] == list(range(10))
    values, answer = read(offset="latest")
    assert (values, answer["next_offset"], answer["high_watermark"]) == ([], 10, 10)
    refused = http.get(f"{path}?offset=11")
    assert (refused.status_code, refused.json()["error"]) == (416, "OFFSET_OUT_OF_RANGE")


def test_a_read_waits_for_the_first_record(http: httpx.Client, topic: str) -> None:
    path = f"/topics/{topic}/partitions/0/records"
    assert http.get(f"{path}?offset=0&wait=10").json()["records"] == []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.get, f"{path}?offset=0&wait=60000")
        http.post(f"/topics/{topic}/records?partition=0", content=b"there")
        assert [record["value"] for record in waiting.result().json()["records"]] == ["there"]


def test_publish_in_one_call(http: httpx.Client, topic: str) -> None:
    answer = http.post("/publish", json={"topic": topic, "message": {"a": 1}, "key": "k"})
    assert answer.status_code == httpx.codes.OK
    (record,) = read_all(http, topic)
    assert (record["key"], record["value"]) == ("k", '{"a":1}')
    assert answer.json()["offset"] == record["offset"]
    bad: tuple[object, ...] = (
        {},
        {"topic": topic},
        {"topic": 1, "message": ""},
        [],
        {"topic": "", "message": 1},
    )
    for body in bad:
        assert http.post("/publish", json=body).status_code == httpx.codes.BAD_REQUEST
    assert http.post("/publish", content=b"{").status_code == httpx.codes.BAD_REQUEST
