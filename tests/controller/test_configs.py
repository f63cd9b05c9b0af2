from typing import Any

import pytest
from kio.schema.alter_configs.v2 import request as replacement
from kio.schema.incremental_alter_configs.v1 import request as incremental
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kio.static.primitive import i8
from tests.controller.cluster import Cluster, answered
from tests.controller.test_topics import creation, topic

from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.controller.records import ConfigRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE

SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(log_retention_ms="77")
    cluster.call(creation(topic("orders")))
    return cluster


def increments(
    *changes: tuple[str, int, str | None],
    resource: tuple[int, str] = (TOPIC_RESOURCE, "orders"),
    validate_only: bool = False,
) -> IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=(
            incremental.AlterConfigsResource(
                resource_type=i8(resource[0]),
                resource_name=resource[1],
                configs=tuple(
                    incremental.AlterableConfig(
                        name=name, config_operation=i8(operation), value=value
                    )
                    for name, operation, value in changes
                ),
            ),
        ),
        validate_only=validate_only,
    )


def alter(cluster: Cluster, *changes: tuple[str, int, str | None], **kwargs: Any) -> Result[Any]:
    return cluster.result_of(increments(*changes, **kwargs))


def orders_record(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name="orders", name=name, value=value
    )


def test_a_value_is_set_with_exact_records_and_response(cluster: Cluster) -> None:
    result = alter(cluster, ("retention.ms", SET, "9"))
    assert result.records == (orders_record("retention.ms", "9"),)
    assert result.response == IncrementalAlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=(
            AlterConfigsResourceResponse(
                error_code=ErrorCode.none,
                error_message=None,
                resource_type=TOPIC_RESOURCE,
                resource_name="orders",
            ),
        ),
    )


def test_a_value_that_is_already_set_makes_no_record(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, ("retention.ms", SET, "9")))
    assert alter(cluster, ("retention.ms", SET, " 9 ")).records == ()


def test_delete_goes_back_to_the_default(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, ("retention.ms", SET, "9")))
    result = alter(cluster, ("retention.ms", DELETE, None))
    assert result.records == (orders_record("retention.ms", None),)
    cluster.apply(result)
    assert cluster.image.topic_configs("orders") == {}
    assert alter(cluster, ("retention.ms", DELETE, None)).records == ()


def test_append_adds_to_what_holds_and_subtract_takes_away(cluster: Cluster) -> None:
    result = alter(cluster, ("cleanup.policy", APPEND, "compact"))
    assert result.records == (orders_record("cleanup.policy", "delete,compact"),)
    cluster.apply(result)
    assert alter(cluster, ("cleanup.policy", APPEND, "delete,compact")).records == ()
    result = alter(cluster, ("cleanup.policy", SUBTRACT, "delete"))
    assert result.records == (orders_record("cleanup.policy", "compact"),)


def test_append_adds_to_the_brokers_value() -> None:
    cluster = Cluster(log_cleanup_policy="compact")
    cluster.call(creation(topic("orders")))
    result = alter(cluster, ("cleanup.policy", APPEND, "delete"))
    assert result.records == (orders_record("cleanup.policy", "compact,delete"),)


def test_subtract_of_what_is_not_there_writes_the_value_down(cluster: Cluster) -> None:
    result = alter(cluster, ("cleanup.policy", SUBTRACT, "compact"))
    assert result.records == (orders_record("cleanup.policy", "delete"),)


def test_validate_only_makes_no_records(cluster: Cluster) -> None:
    result = alter(cluster, ("retention.ms", SET, "9"), validate_only=True)
    assert result.records == ()
    assert answered(result).responses[0].error_code is ErrorCode.none


def test_brokers_have_values_by_id_and_for_all(cluster: Cluster) -> None:
    for name in ("1", ""):
        result = alter(cluster, ("num.partitions", SET, "3"), resource=(BROKER_RESOURCE, name))
        assert result.records == (
            ConfigRecord(
                resource_type=BROKER_RESOURCE, resource_name=name, name="num.partitions", value="3"
            ),
        )


def test_the_value_for_all_brokers_holds_for_new_topics(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, ("num.partitions", SET, "3"), resource=(BROKER_RESOURCE, "")))
    result = cluster.result_of(creation(topic("payments")))
    assert answered(result).topics[0].num_partitions == 3


@pytest.mark.parametrize(
    ("change", "resource", "code", "message"),
    [
        (("retention.ms", SET, "x"), None, ErrorCode.invalid_config, "Not a number of type LONG"),
        (("retention.ms", SET, None), None, ErrorCode.invalid_request, "Null value not supported"),
        (("retention.ms", APPEND, "1"), None, ErrorCode.invalid_config, "its type is not LIST"),
        (("retention.ms", 9, "1"), None, ErrorCode.invalid_request, "unknown operation 9"),
        (("nope", SET, "1"), None, ErrorCode.invalid_config, "unknown config key"),
        (("cleanup.policy", APPEND, "burn"), None, ErrorCode.invalid_config, "burn"),
        (("retention.ms", SET, "1"), (2, "x"), ErrorCode.unknown_topic_or_partition, "no topic"),
        (("num.partitions", SET, "1"), (4, "9"), ErrorCode.invalid_request, "registered broker"),
        (("num.partitions", SET, "1"), (4, "one"), ErrorCode.invalid_request, "registered"),
        (
            ("node.id", SET, "1"),
            (4, "1"),
            ErrorCode.invalid_request,
            "Cannot update these configs dynamically",
        ),
        (("x", SET, "1"), (8, "1"), ErrorCode.invalid_request, "type 8"),
    ],
)
def test_bad_changes_are_refused(
    cluster: Cluster,
    change: tuple[str, int, str | None],
    resource: tuple[int, str] | None,
    code: ErrorCode,
    message: str,
) -> None:
    result = alter(cluster, change, resource=resource or (TOPIC_RESOURCE, "orders"))
    (answer,) = answered(result).responses
    assert result.records == ()
    assert answer.error_code is code
    assert message in answer.error_message


def test_a_key_that_is_changed_twice_is_refused(cluster: Cluster) -> None:
    result = alter(cluster, ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    (answer,) = answered(result).responses
    assert answer.error_code is ErrorCode.invalid_request
    assert answer.error_message == "Error due to duplicate config keys"
    assert result.records == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("retention.ms", SUBTRACT, "1"),
            "Can't SUBTRACT to key retention.ms because its type is not LIST.",
        ),
        (("retention.ms", SET, None), "Null value not supported for : retention.ms"),
    ],
)
def test_refusals_are_worded_as_in_kafka(
    cluster: Cluster, change: tuple[str, int, str | None], message: str
) -> None:
    (answer,) = answered(alter(cluster, change)).responses
    assert answer.error_message == message


def test_a_bad_change_spoils_all_of_its_resource(cluster: Cluster) -> None:
    assert alter(cluster, ("retention.ms", SET, "1"), ("nope", SET, "1")).records == ()


def test_a_resource_that_is_named_twice_is_refused(cluster: Cluster) -> None:
    request = increments(("retention.ms", SET, "1"))
    request = incremental.IncrementalAlterConfigsRequest(
        resources=request.resources * 2, validate_only=False
    )
    result = cluster.result_of(request)
    assert {answer.error_code for answer in answered(result).responses} == {
        ErrorCode.invalid_request
    }
    assert result.records == ()


def replace(
    cluster: Cluster,
    values: dict[str, str | None],
    resource: tuple[int, str] = (TOPIC_RESOURCE, "orders"),
) -> Result[Any]:
    return cluster.result_of(
        replacement.AlterConfigsRequest(
            resources=(
                replacement.AlterConfigsResource(
                    resource_type=i8(resource[0]),
                    resource_name=resource[1],
                    configs=tuple(
                        replacement.AlterableConfig(name=name, value=value)
                        for name, value in values.items()
                    ),
                ),
            ),
            validate_only=False,
        )
    )


def test_a_replacement_drops_what_it_does_not_name(cluster: Cluster) -> None:
    cluster.apply(replace(cluster, {"retention.ms": "1"}))
    result = replace(cluster, {"cleanup.policy": "compact"})
    assert result.records == (
        orders_record("cleanup.policy", "compact"),
        orders_record("retention.ms", None),
    )


def test_a_bad_replacement_is_refused(cluster: Cluster) -> None:
    result = replace(cluster, {"retention.ms": None})
    assert result.records == ()
    assert answered(result).responses[0].error_code is ErrorCode.invalid_request


def test_min_insync_replicas_is_the_same_on_all_brokers() -> None:
    cluster = Cluster()
    request = increments(("min.insync.replicas", 0, "2"), resource=(BROKER_RESOURCE, "1"))
    result = cluster.result_of(request)
    assert result.records == ()
    assert answered(result).responses[0].error_code is ErrorCode.invalid_config
    request = increments(("min.insync.replicas", 0, "2"), resource=(BROKER_RESOURCE, ""))
    assert len(cluster.result_of(request).records) == 1


def test_the_min_insync_replicas_of_all_brokers_is_changed_but_never_removed() -> None:
    cluster = Cluster()
    everyone = (BROKER_RESOURCE, "")
    for value in ("2", "1"):
        request = increments(("min.insync.replicas", 0, value), resource=everyone)
        cluster.call(request)
    removal = increments(("min.insync.replicas", 1, None), resource=everyone)
    for result in (
        cluster.result_of(removal),
        replace(cluster, {}, resource=everyone),
    ):
        assert result.records == ()
        assert answered(result).responses[0].error_code is ErrorCode.invalid_config
    assert cluster.image.default_broker_configs() == {"min.insync.replicas": "1"}
