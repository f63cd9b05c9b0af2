"""CreateTopics, DeleteTopics, CreatePartitions and the two APIs that alter configs."""

import pytest
from tests.controller.test_configs import increments, replacement
from tests.controller.test_topics import addition, creation, deletion, topic

from ottla.controller.image import TOPIC_RESOURCE
from ottla.handlers import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
)
from ottla.protocol.errors import ApiError, ErrorCode


def replacements(**values):
    return replacement.AlterConfigsRequest(
        resources=(
            replacement.AlterConfigsResource(
                resource_type=TOPIC_RESOURCE,
                resource_name="orders",
                configs=tuple(
                    replacement.AlterableConfig(name=name.replace("_", "."), value=value)
                    for name, value in values.items()
                ),
            ),
        ),
        validate_only=False,
    )


def test_the_image_of_the_broker_has_what_was_answered(node):
    created = node.call(create_topics.handle, creation(topic("orders", 1, 1)))
    assert created.topics[0].error_code is ErrorCode.none
    assert node.image.partition_count("orders") == 1

    grown = node.call(create_partitions.handle, addition("orders", 3))
    assert grown.results[0].error_code is ErrorCode.none
    assert node.image.partition_count("orders") == 3

    node.call(
        incremental_alter_configs.handle,
        increments(("retention.ms", 0, "5")),
    )
    assert node.image.topic_configs("orders") == {"retention.ms": "5"}

    node.call(alter_configs.handle, replacements(segment_ms="7"))
    assert node.image.topic_configs("orders") == {"segment.ms": "7"}

    node.call(delete_topics.handle, deletion({"name": "orders", "topic_id": None}))
    assert node.image.partition_count("orders") is None


@pytest.mark.parametrize(
    ("module", "request_", "items"),
    [
        (create_topics, creation(topic("a"), topic("b")), "topics"),
        (delete_topics, deletion({"name": "a", "topic_id": None}), "responses"),
        (create_partitions, addition("a", 2), "results"),
        (incremental_alter_configs, increments(), "responses"),
        (alter_configs, replacements(), "responses"),
    ],
)
def test_a_refusal_of_the_whole_request_is_told_for_each_item(module, request_, items):
    error = ApiError(ErrorCode.not_controller, "ask another")
    answers = getattr(module.error_response(request_, error), items)
    assert answers
    for answer in answers:
        assert (answer.error_code, answer.error_message) == (error.code, "ask another")
