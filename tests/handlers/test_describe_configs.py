import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from tests.controller.test_configs import increments
from tests.controller.test_topics import creation, topic

from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.describe_configs import error_response
from ottla.handlers.describe_configs import handle as handle_describe_configs
from ottla.handlers.incremental_alter_configs import handle as handle_incremental_alter_configs
from ottla.node.config import BROKER_SCHEMA, TOPIC_SCHEMA
from ottla.protocol.config import ConfigType
from ottla.protocol.errors import ApiError, ErrorCode


def asking(resource_type, name, keys=None, synonyms=False, documentation=False):
    return DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=keys
            ),
        ),
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


def described(node, *args, **kwargs):
    (result,) = node.call(handle_describe_configs, asking(*args, **kwargs)).results
    assert result.error_code is ErrorCode.none
    return {config.name: config for config in result.configs}


@pytest.fixture
def orders(start_node):
    node = start_node(log_retention_ms="77", ssl_key_password="secret")
    configs = {"cleanup.policy": "compact"}
    node.call(handle_create_topics, creation(topic("orders", configs=configs)))
    return node


def test_every_key_of_a_topic_is_listed(orders):
    configs = described(orders, TOPIC_RESOURCE, "orders")
    assert set(configs) == {key.name for key in TOPIC_SCHEMA if not key.internal}
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_source) == (
        "compact",
        1,
    )
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("77", 4)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == (
        "1073741824",
        5,
    )
    assert not any(config.read_only for config in configs.values())


def test_keys_synonyms_and_documentation_on_request(orders):
    configs = described(
        orders, TOPIC_RESOURCE, "orders", ["retention.ms"], synonyms=True, documentation=True
    )
    assert list(configs.values()) == [
        DescribeConfigsResourceResult(
            name="retention.ms",
            value="77",
            read_only=False,
            config_source=4,
            is_sensitive=False,
            synonyms=(DescribeConfigsSynonym(name="log.retention.ms", value="77", source=4),),
            config_type=ConfigType.LONG,
            documentation=TOPIC_SCHEMA["retention.ms"].doc,
        )
    ]


def test_without_the_request_there_are_none(orders):
    config = described(orders, TOPIC_RESOURCE, "orders")["retention.ms"]
    assert (config.synonyms, config.documentation) == ((), None)


def test_every_key_of_the_broker_is_listed(orders):
    configs = described(orders, BROKER_RESOURCE, "1")
    assert set(configs) == {key.name for key in BROKER_SCHEMA if not key.internal}
    assert configs["log.dirs"].read_only
    assert not configs["num.partitions"].read_only


def test_a_replication_quota_of_the_broker_is_listed_while_it_is_set(orders):
    name = "leader.replication.throttled.rate"
    assert name not in described(orders, BROKER_RESOURCE, "1")
    for operation, value in ((0, "1000"), (1, None)):
        request = increments((name, operation, value), resource=(BROKER_RESOURCE, "1"))
        orders.call(handle_incremental_alter_configs, request)
        shown = {
            config.value
            for key, config in described(orders, BROKER_RESOURCE, "1").items()
            if key == name
        }
        assert shown == ({value} if value else set())


def test_a_password_is_never_shown(orders):
    config = described(orders, BROKER_RESOURCE, "1", synonyms=True)["ssl.key.password"]
    assert config.is_sensitive
    assert config.value is None
    assert {synonym.value for synonym in config.synonyms} == {None}


def test_dynamic_values_of_one_broker_and_of_all(orders):
    for name, value in (("", "3"), ("1", "4")):
        request = increments(("num.partitions", 0, value), resource=(BROKER_RESOURCE, name))
        orders.call(handle_incremental_alter_configs, request)
    own = described(orders, BROKER_RESOURCE, "1")["num.partitions"]
    assert (own.value, own.config_source) == ("4", 2)
    shared = described(orders, BROKER_RESOURCE, "")
    assert {name: (config.value, config.config_source) for name, config in shared.items()} == {
        "num.partitions": ("3", 3)
    }


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC_RESOURCE, "other", ErrorCode.unknown_topic_or_partition),
        (TOPIC_RESOURCE, "bad name", ErrorCode.invalid_topic_exception),
        (BROKER_RESOURCE, "2", ErrorCode.invalid_request),
        (8, "2", ErrorCode.invalid_request),
    ],
)
def test_what_cannot_be_described_is_refused(orders, resource_type, name, code):
    (result,) = orders.call(handle_describe_configs, asking(resource_type, name)).results
    assert (result.error_code, result.configs) == (code, ())


def test_a_refusal_of_the_whole_request_is_told_for_each_resource():
    error = ApiError(ErrorCode.unknown_server_error)
    (result,) = error_response(asking(TOPIC_RESOURCE, "a"), error).results
    assert result.error_code is ErrorCode.unknown_server_error
