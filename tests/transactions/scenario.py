"""Scenarios as text: a command, a line of dashes, and its exact trace.

    init a                   InitProducerId by client a; more words: keep two-phase again timeout=1s
    add a t-0 t-1            AddPartitionsToTxn
    verify a t-0             what a partition's leader asks before it takes a write
    commit a                 EndTxn; commit2 is that of the second version (KIP-890)
    abort a                  likewise, and abort2
    markers                  the driver writes all markers
    advance 3s               time passes (ms, s, m, d)
    reload                   another coordinator takes over

The trace has a line per record of the log (`+`), per reply (`<-`) and per transaction whose end the
driver is told of (`!`). A client is a name; the runner remembers its producer id and epoch. `again`
sends those along (KIP-360). There is one transactional id, `x`.
`tests.kits.scenarios` runs them.
"""

from collections.abc import Iterator
from typing import Any

from tests.kits.scenarios import TextScenario, duration_ms
from tests.transactions.kit import TIMEOUT_MS, Coordinator

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.transactions.config import TransactionConfig
from ottla.transactions.record import TransactionRecord
from ottla.transactions.transaction import NO_ID, Producer

_NOBODY = Producer(-1, -1)


class Scenario(TextScenario):
    def __init__(self) -> None:
        self.coordinator = Coordinator(TransactionConfig(two_phase_commit=True))
        self.clients: dict[str, Producer] = {}

    def command(self, command: str) -> Iterator[str]:
        name, *words = command.split()
        before = len(self.coordinator.log)
        self.coordinator.decided.clear()
        try:
            trace = list(getattr(self, f"_on_{name}")(*words))
        except ApiError as error:
            trace = [f"{words[0]} <- {error.code.name}"]
        for record in self.coordinator.log[before:]:
            yield f"+ {_show(record)}"
        yield from (f"! {transactional_id}" for transactional_id in self.coordinator.decided)
        yield from trace

    # Commands.

    def _on_init(self, name: str, *words: str) -> Iterator[str]:
        options = dict(word.partition("=")[::2] for word in words)
        response = self.coordinator.init(
            expected=self.clients[name] if "again" in options else _NOBODY,
            timeout_ms=duration_ms(options["timeout"]) if "timeout" in options else TIMEOUT_MS,
            two_phase="two-phase" in options,
            keep="keep" in options,
        )
        if response.error_code is ErrorCode.none:
            self.clients[name] = Producer(response.producer_id, response.producer_epoch)
        yield f"{name} <- {self._answer(name, response)}{_ongoing(response)}"

    def _on_add(self, name: str, *topic_partitions: str) -> Iterator[str]:
        self.coordinator.add(self.clients[name], *map(_topic_partition, topic_partitions))
        yield f"{name} <- ok"

    def _on_verify(self, name: str, *topic_partitions: str) -> Iterator[str]:
        codes = self.coordinator.verify(
            self.clients[name], *map(_topic_partition, topic_partitions)
        )
        for topic_partition, code in zip(topic_partitions, codes, strict=True):
            yield f"{name} <- {topic_partition} {code.name}"

    def _on_commit(self, name: str) -> Iterator[str]:
        return self._end(name, commit=True, version=0)

    def _on_abort(self, name: str) -> Iterator[str]:
        return self._end(name, commit=False, version=0)

    def _on_commit2(self, name: str) -> Iterator[str]:
        return self._end(name, commit=True, version=2)

    def _on_abort2(self, name: str) -> Iterator[str]:
        return self._end(name, commit=False, version=2)

    def _end(self, name: str, *, commit: bool, version: int) -> Iterator[str]:
        response = self.coordinator.end(self.clients[name], commit=commit, version=version)
        if version:
            self.clients[name] = Producer(response.producer_id, response.producer_epoch)
        yield f"{name} <- {self._answer(name, response)}"

    def _on_markers(self) -> Iterator[str]:
        written = self.coordinator.write_markers()
        kind = "commit" if written.committed else "abort"
        topic_partitions = ",".join(map(str, sorted(written.partitions))) or "-"
        yield f"{kind} {written.producer_id}:{written.producer_epoch} to {topic_partitions}"

    def _on_advance(self, duration: str) -> Iterator[str]:
        self.coordinator.advance(duration_ms(duration))
        yield from ()

    def _on_reload(self) -> Iterator[str]:
        self.coordinator.reload()
        yield from ()

    def _answer(self, name: str, response: Any) -> str:
        if response.error_code is not ErrorCode.none:
            code: ErrorCode = response.error_code
            return code.name
        producer = self.clients[name]
        return f"{producer.id}:{producer.epoch}"


def _ongoing(response: Any) -> str:
    if response.ongoing_txn_producer_id == NO_ID:
        return ""
    return f" keeps {response.ongoing_txn_producer_id}:{response.ongoing_txn_producer_epoch}"


def _topic_partition(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


def _show(record: TransactionRecord) -> str:
    transaction = record.transaction
    if transaction is None:
        return f"{record.transactional_id} gone"
    shown = (
        f"{record.transactional_id} {transaction.state.kafka_name}"
        f" {transaction.producer_id}:{transaction.producer_epoch}"
    )
    if transaction.next_producer_id != NO_ID:
        shown += f" next={transaction.client.id}:{transaction.client.epoch}"
    if transaction.partitions:
        shown += " " + ",".join(map(str, sorted(transaction.partitions)))
    return shown
