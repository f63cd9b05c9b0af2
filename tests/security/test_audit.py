import json

from ottla.security.audit import (
    CHANGE_RATE,
    EVENTS_REMEMBERED_MAX,
    NAMES_MAX,
    REPEATS_MS,
    Audit,
    Event,
    Kind,
    event_text,
)
from ottla.security.principal import Principal

ALICE = Principal("User", "alice")


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now_ms = 0.0
        self.audit = Audit(self.events.append, lambda: self.now_ms)

    def log_in(self, host: str = "10.0.0.1") -> None:
        self.audit.tell(Kind.LOGIN, ALICE, host, mechanism="PLAIN")


def test_an_event_says_who_did_what_from_where() -> None:
    told = Told()
    told.log_in()
    assert told.events == [
        {"event": "login", "principal": "User:alice", "host": "10.0.0.1", "mechanism": "PLAIN"}
    ]
    assert event_text(told.events[0]) == (
        "login principal=User:alice host=10.0.0.1 mechanism=PLAIN"
    )


def test_repetitions_are_counted_and_said_at_the_end_of_the_interval() -> None:
    told = Told()
    for _ in range(500):
        told.log_in()
    assert len(told.events) == 1
    told.now_ms += REPEATS_MS
    told.log_in()
    assert told.events[1] == {"event": "summary", "of": "login", "repeated": 499, "left_out": 0}
    assert len(told.events) == 3


def test_a_flood_of_different_refusals_is_bounded_and_counted() -> None:
    told = Told()
    total = 100_000
    for number in range(total):
        told.now_ms += 1
        told.audit.tell(Kind.ACCESS_REFUSED, ALICE, "10.0.0.1", resource=f"TOPIC:{number}")
    told.audit.settle()
    assert len(told.events) < 2_500  # 100 s at 20 a second, and 200 at once.
    counted = 0
    for event in told.events:
        counted += event.get("left_out_before", 0) + event.get("left_out", 0)
        counted += 1 if event["event"] == "access_refused" else 0
    assert counted == total


def test_what_is_remembered_is_bounded() -> None:
    told = Told()
    for number in range(3 * EVENTS_REMEMBERED_MAX):
        told.log_in(f"host-{number}")
    assert len(told.audit._seen) == EVENTS_REMEMBERED_MAX


def test_equal_changes_are_all_told() -> None:
    told = Told()
    for _ in range(5):
        told.audit.tell(Kind.CHANGE, ALICE, "10.0.0.1", action="create_topics", of=["orders"])
    assert len(told.events) == 5
    assert CHANGE_RATE > 5


def test_names_of_clients_cannot_forge_lines() -> None:
    told = Told()
    forged = Principal("User", 'x\n2026 INFO audit: login principal=User:admin "')
    told.audit.tell(Kind.LOGIN, forged, "10.0.0.1")
    text = event_text(told.events[0])
    assert "\n" not in text
    assert json.loads(text.removeprefix("login principal=").removesuffix(" host=10.0.0.1"))


def test_long_texts_and_lists_are_cut() -> None:
    told = Told()
    names = [f"topic-{number}" for number in range(1_000)]
    told.audit.tell(Kind.CHANGE, Principal("User", "x" * 10_000), "::1", of=names)
    (event,) = told.events
    assert len(event["principal"]) < 300
    assert event["of"][-1] == f"and {1_000 - NAMES_MAX} more"
    assert len(event["of"]) == NAMES_MAX + 1
