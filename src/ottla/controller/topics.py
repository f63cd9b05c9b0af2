"""Topics: create, delete, and add partitions."""

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable
from dataclasses import field
from typing import Final, TypeVar
from uuid import UUID

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from ottla.controller.config import (
    DEFAULT_REPLICATION_FACTOR,
    DELETE_TOPIC_ENABLE,
    NUM_PARTITIONS,
)
from ottla.controller.effective_configs import ConfigEntry, ConfigRules, EffectiveConfigs
from ottla.controller.image import TOPIC_RESOURCE, MetadataImage, TopicImage
from ottla.controller.mutations import MutationQuota
from ottla.controller.partitions import (
    PARTITIONS_PER_REQUEST_MAX,
    candidates,
    new_partitions,
    open_candidates,
)
from ottla.controller.placement import place_replicas, validate_manual
from ottla.controller.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.times import milliseconds
from ottla.protocol.topic_names import collision_key, validate_topic_name
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC

UNLIMITED: Final = MutationQuota()
DEFAULT_COUNT = -1  # KIP-464: use the broker's default.

_T = TypeVar("_T")
_N = TypeVar("_N", bound=Hashable)

Assignments = list[tuple[BrokerId, ...]]


@dataclass(slots=True)
class _Plan:
    """The effects of a request so far; later items see those of earlier ones."""

    quota: MutationQuota
    records: list[MetadataRecord] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # By collision key.
    partition_count: int = 0

    @property
    def throttle_time(self) -> i32Timedelta:
        return milliseconds(self.quota.throttle_ms)

    def take_partitions(self, count: int) -> None:
        if self.partition_count + count > PARTITIONS_PER_REQUEST_MAX:
            raise ApiError(
                ErrorCode.policy_violation,
                f"one request creates at most {PARTITIONS_PER_REQUEST_MAX} partitions",
            )
        self.quota.take(count)
        self.partition_count += count


class TopicControl:
    """`placement_start(n)` selects the first of n brokers; `new_topic_id` returns unused ids."""

    def __init__(
        self,
        image: MetadataImage,
        rules: ConfigRules,
        new_topic_id: Callable[[], UUID],
        placement_start: Callable[[int], int],
    ) -> None:
        self._image = image
        self._rules = rules
        self._configs = EffectiveConfigs(image, rules, None)
        self._new_topic_id = new_topic_id
        self._placement_start = placement_start

    def create_topics(
        self, request: CreateTopicsRequest, quota: MutationQuota = UNLIMITED
    ) -> Result[CreateTopicsResponse]:
        plan = _Plan(quota)
        repeated = _repeated(topic.name for topic in request.topics)
        results = []
        for topic in _once(request.topics, lambda topic: topic.name):
            try:
                _validate_not_repeated(topic.name, repeated)
                results.append(self._create(topic, plan, validate_only=request.validate_only))
            except ApiError as error:
                results.append(_failed_creation(topic.name, error))
        response = CreateTopicsResponse(throttle_time=plan.throttle_time, topics=tuple(results))
        return Result(response, () if request.validate_only else tuple(plan.records))

    def delete_topics(
        self, request: DeleteTopicsRequest, quota: MutationQuota = UNLIMITED
    ) -> Result[DeleteTopicsResponse]:
        """A topic that is named more than once, by name or id, is not deleted.

        The handler relies on this: it does not authorize the deletion of repeated topics.
        """
        records: list[MetadataRecord] = []
        repeated = _repeated((state.name, state.topic_id) for state in request.topics)
        repeated_ids = _repeated(map(self._id_to_delete, request.topics))
        results = []
        for state in _once(request.topics, lambda state: (state.name, state.topic_id)):
            try:
                topic = self._find_to_delete(state, repeated)
                if topic.topic_id in repeated_ids:
                    raise _repetition(topic.name)
                quota.take(len(topic.partitions))
                records.append(RemoveTopicRecord(topic_id=topic.topic_id))
                results.append(_deletion(topic.name, topic.topic_id, None))
            except ApiError as error:
                results.append(_deletion(state.name, state.topic_id, error))
        throttle_time = milliseconds(quota.throttle_ms)
        response = DeleteTopicsResponse(throttle_time=throttle_time, responses=tuple(results))
        return Result(response, tuple(records))

    def create_partitions(
        self, request: CreatePartitionsRequest, quota: MutationQuota = UNLIMITED
    ) -> Result[CreatePartitionsResponse]:
        plan = _Plan(quota)
        repeated = _repeated(topic.name for topic in request.topics)
        results = []
        for topic in _once(request.topics, lambda topic: topic.name):
            try:
                _validate_not_repeated(topic.name, repeated)
                plan.records.extend(self._add_partitions(topic, plan))
                results.append(_addition(topic.name, None))
            except ApiError as error:
                results.append(_addition(topic.name, error))
        response = CreatePartitionsResponse(
            throttle_time=plan.throttle_time, results=tuple(results)
        )
        return Result(response, () if request.validate_only else tuple(plan.records))

    def _create(
        self, topic: CreatableTopic, plan: _Plan, *, validate_only: bool
    ) -> CreatableTopicResult:
        self._validate_new_name(topic.name, plan)
        configs = self._validated_configs(topic)
        assign = self._manual_assignments if topic.assignments else self._automatic_assignments
        assignments = assign(topic)
        plan.take_partitions(len(assignments))
        plan.names[collision_key(topic.name)] = topic.name
        topic_id = self._new_topic_id()
        plan.records.append(TopicRecord(name=topic.name, topic_id=topic_id))
        plan.records.extend(_config_records(topic.name, configs))
        plan.records.extend(new_partitions(topic_id, assignments, candidates(self._image)))
        return CreatableTopicResult(
            name=topic.name,
            topic_id=None if validate_only else topic_id,
            error_code=ErrorCode.none,
            error_message=None,
            num_partitions=i32(len(assignments)),
            replication_factor=i16(len(assignments[0])),
            configs=tuple(map(_creation_config, self._configs.describe_topic(configs))),
        )

    def _validate_new_name(self, name: str, plan: _Plan) -> None:
        validate_topic_name(name)
        if name == CLUSTER_METADATA_TOPIC:
            raise ApiError(ErrorCode.invalid_request, f"{name} cannot be created by clients")
        if name in self._image.topics:
            raise ApiError(ErrorCode.topic_already_exists, f"topic {name} already exists")
        key = collision_key(name)
        other = self._image.topic_by_collision_key.get(key) or plan.names.get(key)
        if other:
            raise ApiError(
                ErrorCode.invalid_topic_exception,
                f"topic {name} collides with {other}: '.' and '_' count as the same character",
            )

    def _validated_configs(self, topic: CreatableTopic) -> dict[str, str]:
        configs: dict[str, str] = {}
        for config in topic.configs:
            if config.value is None:
                raise ApiError(
                    ErrorCode.invalid_config,
                    f"Null value not supported for topic configs: {config.name}",
                )
            key = self._rules.topic_schema[config.name]
            configs[config.name] = key.format(key.parse(config.value))
        return configs

    def _automatic_assignments(self, topic: CreatableTopic) -> Assignments:
        defaults = self._configs.broker_values()
        count: int = topic.num_partitions
        if count == DEFAULT_COUNT:
            count = defaults[NUM_PARTITIONS]
        factor: int = topic.replication_factor
        if factor == DEFAULT_COUNT:
            brokers_count = max(len(open_candidates(self._image)), 1)
            factor = min(defaults[DEFAULT_REPLICATION_FACTOR], brokers_count)
        if count < 1:
            raise ApiError(
                ErrorCode.invalid_partitions, f"{count} partitions: there must be one or more"
            )
        if factor < 1:
            raise ApiError(
                ErrorCode.invalid_replication_factor,
                f"replication factor {factor}: it must be one or more",
            )
        return self._place_replicas(count, factor)

    def _place_replicas(self, count: int, factor: int) -> Assignments:
        if count > PARTITIONS_PER_REQUEST_MAX:
            raise ApiError(
                ErrorCode.policy_violation,
                f"{count} partitions: one request creates at most {PARTITIONS_PER_REQUEST_MAX}",
            )
        brokers = candidates(self._image)
        return place_replicas(brokers, count, factor, self._placement_start(max(len(brokers), 1)))

    def _manual_assignments(self, topic: CreatableTopic) -> Assignments:
        if topic.num_partitions != DEFAULT_COUNT or topic.replication_factor != DEFAULT_COUNT:
            raise ApiError(
                ErrorCode.invalid_request,
                "with a manual assignment, partition count and replication factor must be -1",
            )
        by_index = {each.partition_index: each.broker_ids for each in topic.assignments}
        if sorted(by_index) != list(range(len(topic.assignments))):
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                "a manual assignment must have the partitions 0 to n - 1, each once",
            )
        return self._validated_assignments([by_index[index] for index in sorted(by_index)], None)

    def _validated_assignments(
        self, assignments: Assignments, replication_factor: int | None
    ) -> Assignments:
        brokers = candidates(self._image)
        for replicas in assignments:
            validate_manual(replicas, brokers, replication_factor)
            replication_factor = len(replicas)
        return assignments

    def _id_to_delete(self, state: DeleteTopicState) -> UUID | None:
        """None if there is no such topic, or if it is named both ways, which is rejected anyway."""
        if state.name is None:
            return state.topic_id
        topic = self._image.topics.get(state.name)
        return None if topic is None or state.topic_id is not None else topic.topic_id

    def _find_to_delete(self, state: DeleteTopicState, repeated: Container[Hashable]) -> TopicImage:
        if not self._configs.broker_values()[DELETE_TOPIC_ENABLE]:
            raise ApiError(ErrorCode.topic_deletion_disabled, "delete.topic.enable is false")
        if (state.name, state.topic_id) in repeated:
            raise _repetition(state.name or str(state.topic_id))
        if (state.name is None) == (state.topic_id is None):
            raise ApiError(ErrorCode.invalid_request, "name a topic by its name or by its id")
        if state.topic_id is not None:
            topic = self._image.topic_by_id(state.topic_id)
            if topic is None:
                raise ApiError(ErrorCode.unknown_topic_id, f"no topic has id {state.topic_id}")
            return topic
        return self._find(state.name or "")

    def _find(self, name: str) -> TopicImage:
        topic = self._image.topics.get(name)
        if topic is None:
            raise ApiError(
                ErrorCode.unknown_topic_or_partition,
                "This server does not host this topic-partition.",
            )
        return topic

    def _add_partitions(
        self, request: CreatePartitionsTopic, plan: _Plan
    ) -> Iterable[PartitionRecord]:
        topic = self._find(request.name)
        present = len(topic.partitions)
        added = request.count - present
        if added == 0:
            raise ApiError(
                ErrorCode.invalid_partitions, f"Topic already has {present} partition(s)."
            )
        if added < 0:
            raise ApiError(
                ErrorCode.invalid_partitions,
                f"The topic {topic.name} currently has {present} partition(s); {request.count} "
                "would not be an increase.",
            )
        plan.take_partitions(added)
        factor = len(topic.partitions[0].replicas)
        if request.assignments is None:
            assignments = self._place_replicas(added, factor)
        elif len(request.assignments) == added:
            given = [assignment.broker_ids for assignment in request.assignments]
            assignments = self._validated_assignments(given, factor)
        else:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"Attempted to add {added} additional partition(s), but only"
                f" {len(request.assignments)} assignment(s) were specified.",
            )
        return new_partitions(topic.topic_id, assignments, candidates(self._image), present)


def _config_records(topic: str, configs: dict[str, str]) -> Iterable[ConfigRecord]:
    for name, value in configs.items():
        yield ConfigRecord(
            resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=value
        )


def _creation_config(entry: ConfigEntry) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.key.name,
        value=entry.value,
        read_only=False,
        config_source=i8(entry.source),
        is_sensitive=entry.key.sensitive,
    )


def _failed_creation(name: TopicName, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        topic_id=None,
        error_code=error.code,
        error_message=error.message,
        configs=None,
    )


def _deletion(
    name: TopicName | None, topic_id: UUID | None, error: ApiError | None
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
    )


def _addition(name: TopicName, error: ApiError | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
    )


def _repeated(names: Iterable[_N]) -> set[_N]:
    return {name for name, count in Counter(names).items() if count > 1}


def _once(items: Iterable[_T], name: Callable[[_T], Hashable]) -> Iterable[_T]:
    """One item per name, in the order in which the names first appear."""
    return {name(item): item for item in items}.values()


def _validate_not_repeated(name: str, repeated: Container[str]) -> None:
    if name in repeated:
        raise _repetition(name)


def _repetition(name: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, f"topic {name} is named more than once")
