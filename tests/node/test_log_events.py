import json
import logging
from collections import Counter

import pytest

from ottla.network.quiet_log import QuietLog
from ottla.node.log_events import event_of
from ottla.node.log_lines import JsonLines
from ottla.node.log_reference import events


def test_an_event_is_named_after_what_does_not_vary() -> None:
    text = "node %d of cluster %s serves %-5s with 50%% after %.1f s, of the node's own %s in all"
    assert event_of(text) == "node-of-cluster-serves-with-50-after-s"
    assert event_of("%s") == ""


def test_every_line_of_code_has_an_event_of_its_own() -> None:
    found = events()
    assert len(found) > 100
    assert [event for event in found if not event.event] == []
    names = Counter((event.component, event.event) for event in found)
    assert [name for name, count in names.items() if count > 1] == []


def record(message: str, *arguments: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("ottla.node", logging.INFO, "", 0, message, arguments, None)
    made.__dict__.update(more)
    return made


def test_a_line_of_json_has_the_event_and_its_arguments() -> None:
    line = json.loads(JsonLines().format(record("node %d has %s", 1, ["stopped"])))
    assert line["event"] == "node-has"
    assert line["arguments"] == [1, "['stopped']"]
    assert line["message"] == "node 1 has ['stopped']"
    assert (line["level"], line["component"]) == ("info", "node")


def test_a_line_that_is_put_together_is_named_by_its_template() -> None:
    line = json.loads(JsonLines().format(record("%s", "a; b", template="partitions changed")))
    assert line["event"] == "partitions-changed"


def test_lines_that_were_left_out_do_not_change_the_event(caplog: pytest.LogCaptureFixture) -> None:
    now_ms = [0.0]
    quiet = QuietLog(logging.getLogger("ottla.network.session_hub"), lambda: now_ms[0])
    for at in (0.0, 1.0, 2000.0):
        now_ms[0] = at
        quiet.warn_rarely("a", "refused a connection from %s", "b")
    lines = [json.loads(JsonLines().format(logged)) for logged in caplog.records]
    assert [line["event"] for line in lines] == ["refused-a-connection-from"] * 2
    assert lines[1]["message"] == "refused a connection from b (1 more like this)"
