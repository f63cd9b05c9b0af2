import json
from typing import Any

import httpx
import pytest

EVENT = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "sold"}


def written(http: httpx.Client, topic: str) -> list[tuple[Any, Any, dict[str, str]]]:
    found = []
    for partition in (0, 1):
        for record in http.get(f"/topics/{topic}/partitions/{partition}/records").json()["records"]:
            headers = {header["name"]: header["value"] for header in record["headers"]}
            found.append((record["key"], record["value"], headers))
    return found


def test_binary_mode(http: httpx.Client, topic: str) -> None:
    headers = {f"ce-{name}": value for name, value in EVENT.items()}
    headers |= {"ce-partitionkey": "caf%C3%A9", "Content-Type": "text/plain"}
    answer = http.post(f"/topics/{topic}/records", headers=headers, content=b"lamp")
    assert answer.status_code == httpx.codes.OK
    expected = {f"ce_{name}": value for name, value in EVENT.items()}
    expected |= {"ce_partitionkey": "café", "content-type": "text/plain"}
    assert written(http, topic) == [("café", "lamp", expected)]


def test_structured_mode(http: httpx.Client, topic: str) -> None:
    headers = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
    event = {**EVENT, "data": {"item": "lamp"}}
    http.post(f"/topics/{topic}/records?key=k", headers=headers, json=event)
    ((key, value, record_headers),) = written(http, topic)
    assert (key, json.loads(value)) == ("k", event)
    assert record_headers == {"content-type": "application/cloudevents+json; charset=UTF-8"}


def test_batch_mode(http: httpx.Client, topic: str) -> None:
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    events = [{**EVENT, "id": str(number), "partitionkey": "k"} for number in range(3)]
    answer = http.post(f"/topics/{topic}/records", headers=headers, json=events)
    assert len(answer.json()["records"]) == 3
    assert [json.loads(value) for _, value, _ in written(http, topic)] == events


@pytest.mark.parametrize("missing", list(EVENT))
def test_an_event_without_what_it_needs(http: httpx.Client, topic: str, missing: str) -> None:
    event = {name: value for name, value in EVENT.items() if name != missing}
    headers = {"Content-Type": "application/cloudevents+json"}
    answer = http.post(f"/topics/{topic}/records", headers=headers, json=event)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert missing in answer.json()["detail"]
