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


class Trail:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now_ms = 0.0
        self.audit = Audit(self.events.append, lambda: self.now_ms)

    def log_in(self, host: str = "10.0.0.1") -> None:
        self.audit.tell(Kind.LOGIN, ALICE, host, mechanism="PLAIN")


def test_an_event_says_who_did_what_from_where() -> None:
    trail = Trail()
    trail.log_in()
    assert trail.events == [
        {"event": "login", "principal": "User:alice", "host": "10.0.0.1", "mechanism": "PLAIN"}
    ]
    assert event_text(trail.events[0]) == (
        "login principal=User:alice host=10.0.0.1 mechanism=PLAIN"
    )


def test_repetitions_are_counted_and_said_at_the_end_of_the_interval() -> None:
    trail = Trail()
    for _ in range(500):
        trail.log_in()
    assert len(trail.events) == 1
    trail.now_ms += REPEATS_MS
    trail.log_in()
    assert trail.events[1] == {"event": "summary", "of": "login", "repeated": 499, "left_out": 0}
    assert len(trail.events) == 3


def test_a_flood_of_different_refusals_is_bounded_and_counted() -> None:
    trail = Trail()
    total = 100_000
    for number in range(total):
        trail.now_ms += 1
        trail.audit.tell(Kind.ACCESS_REFUSED, ALICE, "10.0.0.1", resource=f"TOPIC:{number}")
    trail.audit.settle()
    assert len(trail.events) < 2_500  # 100 s at 20 a second, and 200 at once.
    counted = 0
    for event in trail.events:
        counted += event.get("left_out_before", 0) + event.get("left_out", 0)
        counted += 1 if event["event"] == "access_refused" else 0
    assert counted == total


def test_what_is_remembered_is_bounded() -> None:
    trail = Trail()
    for number in range(3 * EVENTS_REMEMBERED_MAX):
        trail.log_in(f"host-{number}")
    assert len(trail.audit._seen) == EVENTS_REMEMBERED_MAX


def test_equal_changes_are_all_told() -> None:
    trail = Trail()
    for _ in range(5):
        trail.audit.tell(Kind.CHANGE, ALICE, "10.0.0.1", action="create_topics", of=["orders"])
    assert len(trail.events) == 5
    assert CHANGE_RATE > 5


def test_names_of_clients_cannot_forge_lines() -> None:
    trail = Trail()
    forged = Principal("User", 'x\n2026 INFO audit: login principal=User:admin "')
    trail.audit.tell(Kind.LOGIN, forged, "10.0.0.1")
    text = event_text(trail.events[0])
    assert "\n" not in text
    assert json.loads(text.removeprefix("login principal=").removesuffix(" host=10.0.0.1"))


def test_long_texts_and_lists_are_cut() -> None:
    trail = Trail()
    names = [f"topic-{number}" for number in range(1_000)]
    trail.audit.tell(Kind.CHANGE, Principal("User", "x" * 10_000), "::1", of=names)
    (event,) = trail.events
    assert len(event["principal"]) < 300
    assert event["of"][-1] == f"and {1_000 - NAMES_MAX} more"
    assert len(event["of"]) == NAMES_MAX + 1
