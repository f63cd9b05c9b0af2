"""Drives the quorum core: one call at a time, acting on each Ready before the next.

The quorum state is synced in a thread. Until that is done, the rest of its Ready waits, and calls
queue up behind it. The log is written at once and synced by the flusher, and the core is told of
each sync that no truncation has overtaken.

A full disk loses nothing: the core is dropped, and after a while a new one starts from what is on
disk, as if the node had restarted. Any other disk failure is fatal for the node.

A single voter has no one to wait for and stands for election at once.

The core's time stands still while a quorum state is saved, and is set back when this process did
not run for a while: the core can conclude that others are silent only while it listens itself. On a
slow disk an election would otherwise be over before its first request has left, and so would the
next one.
"""

import dataclasses
import logging
import math
from asyncio import Future, TimerHandle, sleep
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.raft.config import RaftConfig
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import NOBODY, Message, Request, sender_of
from ottla.raft.node import RaftNode
from ottla.raft.quorum import Identity
from ottla.raft.quorum_state import QuorumState
from ottla.raft.ready import Ready, RoleChange
from ottla.raft.states import Follower, Leader, Role
from ottla.raft.voters import VoterHistory, VoterSet
from ottla.runtime.flusher import Flusher
from ottla.runtime.process import Process
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_answers import RaftAnswers
from ottla.runtime.raft_exchange import RaftExchange
from ottla.runtime.raft_log import RaftLog
from ottla.runtime.snapshots import SnapshotContent
from ottla.storage.errors import StorageError

logger = logging.getLogger(__name__)

RESTART_DELAY_S: Final = 1.0
RESTARTS_IN_A_ROW_MS: Final = 10_000.0
RESIGN_TIMEOUT_S: Final = 0.5
_TICK_DELAY_MS_MIN: Final = 1
_LATE_MS: Final = 100  # A tick this late means that the process did not run.

PrepareSnapshot = Callable[[SnapshotContent], Any]  # In a thread; ValueError if it is not valid.


class DriverListener(NamedTuple):
    on_role_change: Callable[[RoleChange], None]
    on_high_watermark: Callable[[int], None]
    prepare_snapshot: PrepareSnapshot
    # With the result of the preparation; everything before is void.
    on_snapshot_installed: Callable[[OffsetAndEpoch, Any], None]


class RaftDriver:
    """Belongs to the loop's thread."""

    def __init__(
        self,
        *,
        identity: Identity,
        config: RaftConfig,
        initial_voters: VoterSet,
        log: RaftLog,
        state_file: QuorumStateFile,
        exchange: RaftExchange,
        random: Callable[[int], int],
        process: Process,
        sync_executor: Executor,
        on_failure: Callable[[BaseException], object],
    ) -> None:
        self.identity = identity
        self.log = log
        self._config = config
        self._initial_voters = initial_voters
        self._state_file = state_file
        self._exchange = exchange
        self._clock = clock = process.clock
        self._random = random
        self._loop = process.loop
        self._process = process
        self._sync_executor = sync_executor  # Only for the log and the quorum state.
        self._on_failure = on_failure
        self._flusher = Flusher(process.loop, sync_executor, lambda _, error: self._fail(error))
        # The core needs time that never goes back, and writes it into records.
        self._clock_offset_ms = clock.now_ms() - int(clock.monotonic_ms())
        self._ticked_at_ms = 0
        self._due_ms: int | None = None  # When the next tick is due.
        self._excused_ms: int | None = None  # A tick that came late, and is given more time.
        self._answers = RaftAnswers(log, exchange, process)
        self._listener: DriverListener  # Once `listen` was called.
        self._core: RaftNode | None = None  # None before `start`, and while the disk is full.
        self._life = 0  # Counts the cores: what was begun for an earlier one is void.
        self._restarted_at_ms = -math.inf  # After the log could not be written.
        self._calls: deque[Callable[[RaftNode], object]] = deque()
        self._held: Ready | None = None  # Waiting for its quorum state to be synced.
        self._held_at_ms = 0
        self._running = False
        # As last logged.
        self._leads = False
        self._logged_leader: tuple[int | None, int] | None = None
        self._logged_standing = -1
        self._timer: TimerHandle | None = None
        self._stopped = False

    def listen(self, listener: DriverListener) -> None:
        """Call before `start`; there is only one listener."""
        self._listener = listener

    async def start(self) -> None:
        voters, saved = await self._process.in_thread(self._load)
        if self._stopped:
            return
        self._core = core = self._new_core(voters, saved)
        if isinstance(core.state, Follower):  # From the quorum state; not reported by the core.
            self._on_role_change(RoleChange(Role.FOLLOWER, core.state.epoch, core.state.leader_id))
        self._run()

    async def stop(self) -> None:
        """If this node leads, it notifies the others first."""
        core = self._core
        if core is not None and isinstance(core.state, Leader) and len(core.voters.latest) > 1:
            self._call(RaftNode.resign)
            await self._exchange.wait_for_answers(RESIGN_TIMEOUT_S)
        self._stopped = True
        self._drop_core("the node stops")

    # Accessors.

    @property
    def core(self) -> RaftNode | None:
        """For inspection."""
        return self._core

    def address_of(self, node_id: int) -> Address | None:
        endpoints = () if self._core is None else self._core.endpoints_of(node_id)
        return self._exchange.address_of(node_id, endpoints)

    # Calls.

    def handle(self, request: Request) -> "Future[Any]":
        """The response to a request from another replica or a client."""
        sender = sender_of(request)
        address = None if sender == NOBODY else self.address_of(sender)
        if address is not None:
            self._exchange.expect(address)
        message, reply = self._exchange.receive(request)
        if self._core is None:
            self._exchange.fail_replies("the quorum is not ready here")
        else:
            self._call(lambda core: core.step(message))
        return reply

    def append(self, batch: bytearray) -> None:
        """Append a batch as the leader. ApiError if another node leads, or the disk is full."""
        assert not self._running, "an append inside of a call"
        self._run()
        core, life = self._core, self._life
        if core is None or self._held is not None or not isinstance(core.state, Leader):
            raise ApiError(ErrorCode.not_controller, "another node leads the quorum")
        with self._exclusively():
            self._step(lambda core: core.append(batch))
        if life != self._life:
            raise ApiError(ErrorCode.kafka_storage_error, "the log cannot be written")
        self._schedule_tick()

    # Running.

    def _call(self, call: Callable[[RaftNode], object]) -> None:
        self._calls.append(call)
        self._run()

    def _call_in(self, life: int, call: Callable[[RaftNode], object]) -> None:
        if life == self._life:
            self._call(call)

    def _run(self) -> None:
        """Advance the time, then make the waiting calls, until a Ready is held."""
        if self._running or self._held is not None:
            return
        self._maybe_excuse_delay()
        with self._exclusively():
            self._ticked_at_ms = self.now_ms()
            self._step(lambda core: core.tick(self._ticked_at_ms))
            while self._calls and self._held is None and self._core is not None:
                self._step(self._calls.popleft())
        self._schedule_tick()

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Calls made meanwhile are queued. A broken invariant is fatal for the node."""
        assert not self._running
        self._running = True
        try:
            yield
        except AssertionError as error:
            self._on_failure(error)
            raise
        finally:
            self._running = False

    def _step(self, call: Callable[[RaftNode], object]) -> None:
        core = self._core
        if core is not None:
            call(core)
            self._act(core.take_ready())

    def now_ms(self) -> int:
        """The core's time, which never goes back; close to the wall-clock time."""
        return int(self._clock.monotonic_ms()) + self._clock_offset_ms

    def time_of_day_ms(self, core_ms: int) -> int:
        """Convert the core's time to wall-clock time."""
        return self._clock.now_ms() - (self.now_ms() - core_ms)

    def _maybe_excuse_delay(self) -> None:
        """Set the time back: what others sent meanwhile may still be unread.

        A process that is always late is not excused again for the same deadline.
        """
        due_ms, now_ms = self._due_ms, self.now_ms()
        if due_ms is None or now_ms - due_ms <= _LATE_MS:
            self._excused_ms = None
        elif due_ms != self._excused_ms:
            self._excused_ms = due_ms
            self._clock_offset_ms -= now_ms - max(due_ms - _LATE_MS, self._ticked_at_ms)

    def _schedule_tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due_ms = None if self._core is None else self._core.next_deadline_ms
        if self._due_ms is not None and not self._stopped:
            delay_ms = max(self._due_ms - self.now_ms(), _TICK_DELAY_MS_MIN)
            self._timer = self._loop.call_later(delay_ms / 1000, self._run)

    # Acting.

    def _act(self, ready: Ready) -> None:
        if not ready:
            return
        if ready.quorum_state is None:
            self._act_on_rest(ready)
            return
        self._held, self._held_at_ms = ready, self.now_ms()
        life = self._life
        saving = self._loop.run_in_executor(
            self._sync_executor, self._state_file.save, ready.quorum_state
        )
        saving.add_done_callback(lambda done: self._on_saved(life, ready, done))

    def _on_saved(self, life: int, ready: Ready, saving: "Future[None]") -> None:
        error = None if saving.cancelled() else saving.exception()
        if life != self._life:
            return
        self._held = None
        self._clock_offset_ms -= self.now_ms() - self._held_at_ms
        if error is None:
            with self._exclusively():
                self._act_on_rest(ready)
            self._run()
        elif isinstance(error, OSError):
            self._restart(error)
        else:
            self._on_failure(error)

    def _act_on_rest(self, ready: Ready) -> None:
        try:
            self._write(ready)
        except (StorageError, ApiError, OSError) as error:
            self._on_write_failed(error)
            return
        if ready.install_snapshot is not None:
            self._process.supervisor.start(
                "snapshot", self._install_snapshot(self._life, ready.install_snapshot)
            )
        for message in ready.messages:
            self._send(message)
        if ready.high_watermark is not None:
            self.log.on_committed(ready.high_watermark)
            self._listener.on_high_watermark(ready.high_watermark)
        if ready.role_change is not None:
            self._on_role_change(ready.role_change)

    def _write(self, ready: Ready) -> None:
        if ready.truncate_to is not None:
            self.log.truncate_to(ready.truncate_to)
        for batch in ready.appends:
            self.log.append(batch)
        if ready.appends or ready.truncate_to is not None:
            self._sync()
        if ready.snapshot_chunk is not None:
            chunk = ready.snapshot_chunk
            self.log.snapshots.write_part(chunk.snapshot_id, chunk.position, chunk.data)

    def _sync(self) -> None:
        life, log = self._life, self.log
        end_offset, truncations_count = log.end_offset, log.truncations_count

        def on_flushed() -> None:
            if truncations_count == log.truncations_count:
                self._call_in(life, lambda core: core.on_synced(end_offset))

        self._flusher.request(log, on_flushed)

    def _on_role_change(self, change: RoleChange) -> None:
        self._log_role(change)
        self._listener.on_role_change(change)

    def _log_role(self, change: RoleChange) -> None:
        """Only once: a node that cannot reach the leader finds the same one again and again."""
        own_id, led = self.identity.key.id, self._leads
        self._leads = change.role is Role.LEADER
        if led and not self._leads:
            logger.warning("this node no longer leads the quorum: %s", change.reason)
        if change.role is Role.LEADER:
            reason = f": {change.reason}" if change.reason else ""
            logger.info("node %d leads the quorum in epoch %d%s", own_id, change.epoch, reason)
        elif change.role is Role.FOLLOWER:
            leader = (change.leader_id, change.epoch)
            if leader != self._logged_leader:
                self._logged_leader = leader
                logger.info("follows node %s, which leads the quorum in epoch %d", *leader)
        elif change.role is Role.PROSPECTIVE and self._asks_others_after(change.epoch):
            logger.info("asks for votes after epoch %d: %s", change.epoch, change.reason)
        else:
            logger.debug("the node is %s in epoch %d", change.role.value, change.epoch)

    def _asks_others_after(self, epoch: int) -> bool:
        """Whether this has not been logged yet."""
        is_new = epoch != self._logged_standing
        self._logged_standing = epoch
        return is_new and self._core is not None and len(self._core.voters.latest) > 1

    # Messages.

    def _send(self, message: Message) -> None:
        core, life, request = self._core, self._life, message.body
        if not isinstance(request, Request):
            self._answers.send(message)
        elif core is not None:
            self._exchange.send(
                message,
                request,
                core.endpoints_of(message.destination),
                lambda response: self._call_in(life, lambda core: core.step(response)),
                lambda failed, refused: self._call_in(
                    life,
                    lambda core: core.on_request_failed(
                        failed.destination, failed.correlation_id, refused=refused
                    ),
                ),
            )

    # A snapshot from the leader.

    async def _install_snapshot(self, life: int, snapshot_id: OffsetAndEpoch) -> None:
        try:
            voters, prepared, size = await self._process.in_thread(
                self._finish_snapshot, snapshot_id
            )
        except (StorageError, OSError, ValueError) as error:
            if life == self._life:
                self._restart(error)
            return
        self._call_in(
            life, lambda core: self._put_in_place(core, snapshot_id, voters, prepared, size)
        )
        await self._process.in_thread(self.log.remove_passed)

    def _finish_snapshot(self, snapshot_id: OffsetAndEpoch) -> tuple[VoterSet, Any, int]:
        """Runs in a thread. The file gets its final name only once all of it was parsed."""
        content = self.log.snapshots.read_part(snapshot_id)
        if content.voters is None:
            raise ValueError(f"snapshot {snapshot_id} does not say who votes")
        prepared = self._listener.prepare_snapshot(content)
        self.log.expect_snapshot(snapshot_id)
        return content.voters, prepared, self.log.snapshots.finish_part(snapshot_id)

    def _put_in_place(
        self,
        core: RaftNode,
        snapshot_id: OffsetAndEpoch,
        voters: VoterSet,
        prepared: object,
        size: int,
    ) -> None:
        try:
            self.log.restart_at(snapshot_id, size)
        except (StorageError, ApiError, OSError) as error:
            self._on_write_failed(error)
            return
        self._listener.on_snapshot_installed(snapshot_id, prepared)
        core.on_snapshot_installed(snapshot_id, voters)
        self._sync()

    # Starting and restarting.

    def _load(self) -> tuple[VoterHistory, QuorumState]:
        """Runs in a thread. The core assumes that everything in the log is synced."""
        self.log.flush()
        voters = self.log.voters(self._initial_voters)
        saved = self._state_file.load() or QuorumState()
        last_epoch = self.log.epoch_of(self.log.end_offset - 1)
        if saved.leader_epoch < last_epoch:  # A log from before there was a quorum.
            saved = QuorumState(leader_epoch=last_epoch)
        return voters, saved

    def _new_core(self, voters: VoterHistory, saved: QuorumState) -> RaftNode:
        now_ms = self.now_ms()
        if len(voters.latest) == 1 and self.identity.key in voters.latest:
            # As a voter of its last epoch whose election timeout has passed.
            saved = dataclasses.replace(saved, leader_id=None)
            now_ms -= 2 * self._config.election_timeout_ms
        return RaftNode(
            identity=self.identity,
            config=self._config,
            log=self.log,
            voters=voters,
            quorum_state=saved,
            random=self._random,
            now_ms=now_ms,
            committed_offset=self.log.high_watermark,  # An earlier core may have known it.
        )

    def _on_write_failed(self, error: Exception) -> None:
        if self.log.is_online:
            self._restart(error)
        else:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._drop_core(str(error))
        self._on_failure(error)

    def _restart(self, error: Exception) -> None:
        """Logged once, however often it happens in a row."""
        now_ms = self.now_ms()
        if now_ms - self._restarted_at_ms > RESTARTS_IN_A_ROW_MS:
            logger.error("retrying the quorum every %.0f s: %s", RESTART_DELAY_S, error)
        self._restarted_at_ms = now_ms
        self._drop_core(str(error))
        self._process.supervisor.start("quorum restart", self._start_later())

    async def _start_later(self) -> None:
        await sleep(RESTART_DELAY_S)
        try:
            await self.start()
        except (StorageError, OSError) as error:
            self._on_write_failed(error)

    def _drop_core(self, reason: str) -> None:
        core, self._core = self._core, None
        self._life += 1
        self._held = None
        self._calls.clear()
        self._schedule_tick()
        self._exchange.fail_replies(reason)
        if core is not None:
            self._listener.on_role_change(RoleChange(Role.UNATTACHED, core.state.epoch, None))
