"""Scenarios as text: a command, a line of dashes, and its exact trace.

    nodes 1 2 3              three voters start; `observers 4` adds one that does not vote
    cluster 1 2 3            the same, and the first was elected; the trace of that is left out
    advance 1500             milliseconds pass for everyone; nothing is delivered
    advance 1500 2           only for node 2: the clocks of the others stand still
    deliver                  messages are delivered until none is on its way
    deliver 1>2 2>1          once, those on these links
    drop 1>2                 those on this link are lost; `drop` alone loses everything
    cut 3, heal              what is sent to and from a node is lost, until healed
    append 1 x y             batches of one record each
    slow 1, sync 1           a disk that syncs only when told; the sync
    crash 1, start 1         what was not synced is lost
    refuse 1                 connections to node 1, which is down, are refused; `refuse 1 2`: only
                             node 2 has found out
    replace-disk 1           of a node that is down
    resign 1
    snapshot 1               of what is committed; the log before it goes
    add 1 4, remove 1 2      node 1 is asked to change the voters
    status

The trace has what a node does (`1 ...`) and what it sends (`1>2 ...`). A log end is written
offset@epoch. Election timeouts are not random: node n waits 1000 + 10 n.
`tests.kits.scenarios` runs them.
"""

from collections.abc import Iterator

from tests.kits.scenarios import TextScenario
from tests.raft.faults import key_of
from tests.raft.scenario_node import ScenarioNode
from tests.raft.scenario_trace import show_message

from ottla.raft.messages import (
    NOBODY,
    AddRaftVoterRequest,
    Message,
    RemoveRaftVoterRequest,
    Request,
)
from ottla.raft.voters import Voter, VoterSet

DELIVERIES_MAX = 500


class Scenario(TextScenario):
    def __init__(self) -> None:
        self.nodes: dict[int, ScenarioNode] = {}
        self.on_the_way: list[Message] = []
        self.cut: set[int] = set()
        self.asked: dict[tuple[int, int], int] = {}  # The last correlation id, by link.
        self.lines: list[str] = []

    def command(self, command: str) -> Iterator[str]:
        name, *words = command.split()
        getattr(self, f"_on_{name.replace('-', '_')}")(*words)
        yield from self.lines
        self.lines = []

    def send(self, message: Message) -> None:
        if isinstance(message.body, Request):
            self.asked[message.source, message.destination] = message.correlation_id
        lost = message.source in self.cut or message.destination in self.cut
        self.lines.append(show_message(message) + (" (lost)" if lost else ""))
        if not lost and message.destination in self.nodes:
            self.on_the_way.append(message)

    def tell(self, line: str) -> None:
        self.lines.append(line)

    # Commands.

    def _on_nodes(self, *ids: str) -> None:
        voters = VoterSet.of(Voter(key_of(int(number))) for number in ids)
        self._add(ids, voters)

    def _on_cluster(self, *ids: str) -> None:
        self._on_nodes(*ids)
        self._on_advance("1010", ids[0])
        self._on_deliver()
        self.lines = []
        self._on_status()

    def _on_observers(self, *ids: str) -> None:
        self._add(ids, VoterSet())

    def _add(self, ids: tuple[str, ...], voters: VoterSet) -> None:
        for number in map(int, ids):
            self.nodes[number] = ScenarioNode(self, number, voters)
        for number in map(int, ids):
            self.nodes[number].start()

    def _on_advance(self, duration: str, *ids: str) -> None:
        for number in map(int, ids or self.nodes):
            self.nodes[number].advance(int(duration))

    def _on_deliver(self, *links: str) -> None:
        if links:
            chosen = [message for message in self.on_the_way if _link(message) in links]
            self.on_the_way = [each for each in self.on_the_way if each not in chosen]
            for message in chosen:
                self._deliver(message)
            return
        for _ in range(DELIVERIES_MAX):
            if not self.on_the_way:
                return
            self._deliver(self.on_the_way.pop(0))
        raise AssertionError("the messages never end")

    def _deliver(self, message: Message) -> None:
        self.nodes[message.destination].step(message)

    def _on_drop(self, *links: str) -> None:
        self.on_the_way = [
            message for message in self.on_the_way if links and _link(message) not in links
        ]

    def _on_cut(self, *ids: str) -> None:
        self.cut.update(map(int, ids))
        self.on_the_way = [
            message
            for message in self.on_the_way
            if not {message.source, message.destination} & self.cut
        ]

    def _on_heal(self) -> None:
        self.cut.clear()

    def _on_append(self, number: str, *values: str) -> None:
        for value in values:
            self.nodes[int(number)].append(value.encode())

    def _on_slow(self, number: str) -> None:
        self.nodes[int(number)].syncs_at_once = False

    def _on_sync(self, number: str) -> None:
        self.nodes[int(number)].sync()

    def _on_crash(self, number: str) -> None:
        """Responses to it are lost with its connections; requests may reach it after a restart."""
        self.nodes[int(number)].crash()
        self.on_the_way = [
            message
            for message in self.on_the_way
            if message.destination != int(number) or isinstance(message.body, Request)
        ]

    def _on_refuse(self, number: str, *by: str) -> None:
        ended = int(number)
        self.on_the_way = [each for each in self.on_the_way if each.destination != ended]
        for source in map(int, by or self.nodes):
            asked = self.asked.get((source, ended))
            if asked is not None:
                self.nodes[source].fail_request(ended, asked)

    def _on_replace_disk(self, number: str) -> None:
        self.nodes[int(number)].replace_disk()

    def _on_start(self, number: str) -> None:
        self.nodes[int(number)].start()

    def _on_resign(self, number: str) -> None:
        self.nodes[int(number)].run(lambda node: node.resign())

    def _on_snapshot(self, number: str) -> None:
        self.nodes[int(number)].take_snapshot()

    def _on_add(self, number: str, voter: str) -> None:
        key = self.nodes[int(voter)].key
        self._ask(
            number,
            AddRaftVoterRequest(cluster_id="c", timeout_ms=5_000, voter=key, listeners=()),
        )

    def _on_remove(self, number: str, voter: str) -> None:
        self._ask(number, RemoveRaftVoterRequest(cluster_id="c", voter=key_of(int(voter))))

    def _ask(self, number: str, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> None:
        self.nodes[int(number)].step(Message(NOBODY, int(number), 0, request))

    def _on_status(self) -> None:
        for node in self.nodes.values():
            self.lines.append(node.status())


def _link(message: Message) -> str:
    return f"{message.source}>{message.destination}"
