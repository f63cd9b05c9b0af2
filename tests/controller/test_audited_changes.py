from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8, i32
from tests.controller.cluster import Cluster
from tests.controller.test_acls import creation as acl_creation
from tests.controller.test_topics import creation, topic

from ottla.controller.audited_changes import described_change
from ottla.controller.mutations import MutationQuota
from ottla.security.scram import ScramMechanism


def test_topics_are_named_with_what_became_of_them() -> None:
    cluster = Cluster(brokers=1)
    request = creation(topic("orders", 1, 1), topic("no spaces", 1, 1))
    response = cluster.machine.topics.create_topics(request, quota=MutationQuota()).response
    assert described_change(request, response) == (
        "create_topics",
        ["orders", "no spaces (INVALID_TOPIC_EXCEPTION)"],
    )
    assert described_change(request, None) == ("create_topics", [])


def test_keys_of_configs_are_named_and_values_are_not() -> None:
    cluster = Cluster()
    setting = AlterableConfig(name="ssl.key.password", config_operation=i8(0), value="geheim")
    resource = AlterConfigsResource(resource_type=i8(4), resource_name="", configs=(setting,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    response = cluster.machine.configs.incremental_alter_configs(request).response
    described = described_change(request, response)
    assert described is not None
    assert described[0] == "alter_configs"
    assert described[1][0].startswith("broker : ssl.key.password")
    assert "geheim" not in str(described)


def test_users_are_named_with_their_mechanism_and_without_their_keys() -> None:
    cluster = Cluster()
    upsertion = ScramCredentialUpsertion(
        name="alice",
        mechanism=i8(ScramMechanism.SCRAM_SHA_256),
        iterations=i32(4096),
        salt=b"0123456789",
        salted_password=b"0" * 32,
    )
    request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
    response = cluster.machine.users.alter_user_scram_credentials(request).response
    assert described_change(request, response) == ("alter_users", ["set alice SCRAM-SHA-256"])


def test_entries_of_acls_are_told_in_full() -> None:
    cluster = Cluster()
    request = CreateAclsRequest(creations=(acl_creation(), acl_creation(operation=i8(99))))
    response = cluster.machine.acls.create_acls(request).response
    assert described_change(request, response) == (
        "create_acls",
        [
            "ALLOW User:alice from * READ on TOPIC LITERAL:orders",
            "ALLOW User:alice from * UNKNOWN on TOPIC LITERAL:orders (INVALID_REQUEST)",
        ],
    )
