"""Scenarios of a share-partition as text: commands, then the exact trace.

    append 5            a batch of five records; `append 1 control` one that is not delivered
    fetch a [max=3]     member a acquires; with `max` not more than so many
    ack a 0-2=accept    member a says what became of the records
    leave a             member a is gone
    advance 1s          time passes
    leader              another leader begins from what was written
    letters             the dead letters are written

A trace has what was written to the share coordinator (+), what members got, and the state after
the last command: the start offset, then the runs of offsets.
"""

from collections.abc import Iterator

from tests.groups.share.kit import Leader
from tests.kits.scenarios import TextScenario, duration_ms

from ottla.groups.share.delivery import AcknowledgeType, DeliveryState
from ottla.groups.share.offset_runs import Run
from ottla.groups.share.state_records import ShareSnapshotValue, ShareUpdateValue, StateBatchValue
from ottla.machine.record import Record
from ottla.protocol.errors import ApiError


class Scenario(TextScenario):
    def __init__(self) -> None:
        self.leader = Leader(
            lock_duration_ms=30_000,
            delivery_count_limit=2,
            record_locks_max=20,
            dead_letters=True,
            dead_letters_of_rejected=True,
        )

    def command(self, command: str) -> Iterator[str]:
        name, *words = command.split()
        before = len(self.leader.coordinator.log)
        try:
            trace = list(getattr(self, f"_on_{name}")(*words))
        except ApiError as error:
            trace = [f"{words[0]} <- {error.code.name}"]
        for record in self.leader.coordinator.log[before:]:
            yield f"+ {_show(record)}"
        yield from trace

    def _on_append(self, count: str, *words: str) -> Iterator[str]:
        batch = self.leader.append(int(count), deliverable="control" not in words)
        yield f"log {_range(batch.first_offset, batch.last_offset)}"

    def _on_fetch(self, member: str, *words: str) -> Iterator[str]:
        options = dict(word.split("=") for word in words)
        acquired = self.leader.acquire(
            member, int(options.get("max", 500)), batch_size=None if "max" in options else 500
        )
        shown = " ".join(f"{_range(first, last)}#{count}" for first, last, count in acquired)
        yield f"{member} <- {shown or 'nothing'}"
        yield from self._letters()

    def _on_ack(self, member: str, *words: str) -> Iterator[str]:
        acknowledgements = []
        for word in words:
            offsets, kind = word.split("=")
            first, _, last = offsets.partition("-")
            types = (int(AcknowledgeType[kind.upper()]),)
            acknowledgements.append((int(first), int(last or first), types))
        self.leader.acknowledge(member, *acknowledgements)
        yield f"{member} <- ok"
        yield from self._letters()

    def _on_leave(self, member: str) -> Iterator[str]:
        self.leader.release(member)
        yield from self._letters()

    def _on_advance(self, duration: str) -> Iterator[str]:
        self.leader.advance(duration_ms(duration))
        yield from self._letters()

    def _on_leader(self) -> Iterator[str]:
        self.leader.coordinator.reload()
        self.leader.load()
        yield from self._letters()

    def _on_letters(self) -> Iterator[str]:
        self.leader.write_dead_letters()
        return iter(())

    def _letters(self) -> Iterator[str]:
        for letter in self.leader.dead_letters:
            offsets = _range(letter.first_offset, letter.last_offset)
            yield f"dead letter {offsets}#{letter.delivery_count}: {letter.reason.value}"

    def state(self) -> Iterator[str]:
        partition = self.leader.partition
        shown = " ".join(map(_show_run, partition.runs()))
        yield f"= {partition.start_offset} {shown}".rstrip()


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _show_run(run: Run) -> str:
    owner = f"({run.member_id})" if run.member_id is not None else ""
    offsets = _range(run.first_offset, run.last_offset)
    return f"{offsets}:{run.state.name.lower()}{owner}#{run.delivery_count}"


def _show(record: Record) -> str:
    match record.value:
        case ShareSnapshotValue() as value:
            head = f"snapshot {value.snapshot_epoch} start={value.start_offset}"
        case ShareUpdateValue() as value:
            head = f"update {value.snapshot_epoch} start={value.start_offset}"
        case _:
            return "deleted"
    return " ".join([head, *map(_show_batch, value.state_batches)])


def _show_batch(batch: StateBatchValue) -> str:
    state = DeliveryState(batch.delivery_state).name.lower()
    return f"{_range(batch.first_offset, batch.last_offset)}:{state}#{batch.delivery_count}"
