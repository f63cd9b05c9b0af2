"""The controller of this node: its machine over the metadata log in the first log directory."""

import asyncio
from collections.abc import Callable

from ottla.controller.effective_configs import ConfigRules
from ottla.controller.machine import ControllerMachine, ControllerSettings
from ottla.controller.record_codec import MetadataRecordCodec
from ottla.node.environment import Environment
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.runtime.config import SNAPSHOT_BYTES
from ottla.runtime.local_commit_log import LocalCommitLog
from ottla.runtime.machine_runtime import MachineRuntime
from ottla.runtime.snapshots import SnapshotStore
from ottla.storage.config import LogConfig
from ottla.storage.filesystem import Filesystem
from ottla.storage.log import PartitionLog

METADATA_PARTITION = TopicPartition(CLUSTER_METADATA_TOPIC, 0)


def open_metadata_log(filesystem: Filesystem, data_directory: str, now_ms: int) -> PartitionLog:
    directory = f"{data_directory}/{METADATA_PARTITION}"
    filesystem.make_directory(directory)
    return PartitionLog.open(
        directory,
        METADATA_PARTITION,
        None,
        LogConfig(cleanup_policy=(), message_timestamp_after_max_ms=2**63 - 1),
        filesystem,
        now_ms,
    )


def controller_runtime(
    log: PartitionLog,
    environment: Environment,
    rules: ConfigRules,
    cluster_id: str,
    on_failure: Callable[[BaseException], object],
) -> MachineRuntime[ControllerMachine]:
    loop = asyncio.get_running_loop()
    settings = ControllerSettings(
        cluster_id=cluster_id,
        config_rules=rules,
        new_topic_id=environment.new_uuid,
        placement_start=environment.random.randrange,
    )
    commit_log = LocalCommitLog(
        log,
        SnapshotStore(environment.filesystem, log.directory),
        loop,
        environment.executor,
        now_ms=environment.clock.now_ms,
        snapshot_bytes=ConfigValues(rules.static)[SNAPSHOT_BYTES],
    )
    return MachineRuntime(
        lambda timers: ControllerMachine(settings, timers),
        MetadataRecordCodec(),
        commit_log,
        environment.clock,
        loop,
        on_failure=on_failure,
        not_ready=ErrorCode.not_controller,
    )
