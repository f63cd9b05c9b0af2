from collections.abc import Sequence

import pytest
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.static.primitive import i8, i32
from tests.controller.cluster import Cluster, answered

from ottla.controller.image import MetadataImage
from ottla.controller.record_codec import MetadataRecordCodec
from ottla.controller.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ottla.protocol.errors import ErrorCode
from ottla.security.scram import ScramMechanism, is_password, salted_password

SHA_256, SHA_512 = ScramMechanism
SALT = b"0123456789"


def upsertion(
    name: str, password: str, mechanism: int = SHA_256, iterations: int = 4096, salt: bytes = SALT
) -> ScramCredentialUpsertion:
    known = SHA_512 if mechanism == SHA_512 else SHA_256
    salted = salted_password(known, password.encode(), salt or b"x", iterations)
    return ScramCredentialUpsertion(
        name=name,
        mechanism=i8(mechanism),
        iterations=i32(iterations),
        salt=salt,
        salted_password=salted,
    )


def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=i8(mechanism))


def alter(
    cluster: Cluster,
    upsertions: Sequence[ScramCredentialUpsertion] = (),
    deletions: Sequence[ScramCredentialDeletion] = (),
) -> tuple[list[tuple[str, ErrorCode]], tuple[object, ...]]:
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(deletions), upsertions=tuple(upsertions)
    )
    result = cluster.machine.users.alter_user_scram_credentials(request)
    cluster.apply(result)
    return [
        (user_result.user, user_result.error_code) for user_result in answered(result).results
    ], result.records


def test_a_password_is_set_changed_and_removed() -> None:
    cluster = Cluster()
    answers, _ = alter(cluster, [upsertion("alice", "one"), upsertion("alice", "one", SHA_512)])
    assert answers == [("alice", ErrorCode.none)]
    users = cluster.image.scram_credentials
    assert is_password(SHA_512, users["alice", SHA_512], "one")
    alter(cluster, [upsertion("alice", "two")])
    assert is_password(SHA_256, users["alice", SHA_256], "two")
    assert list(users) == [("alice", SHA_256), ("alice", SHA_512)]
    answers, records = alter(cluster, deletions=[deletion("alice"), deletion("alice", SHA_512)])
    assert answers == [("alice", ErrorCode.none)]
    assert records[0] == RemoveUserScramCredentialRecord(name="alice", mechanism=i8(SHA_256))
    assert not users


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsertion("alice", "one", iterations=4095), ErrorCode.unacceptable_credential),
        (upsertion("alice", "one", iterations=16385), ErrorCode.unacceptable_credential),
        (upsertion("alice", "one", salt=b""), ErrorCode.unacceptable_credential),
        (upsertion("", "one"), ErrorCode.unacceptable_credential),
        (upsertion("a" * 256, "one"), ErrorCode.unacceptable_credential),
        (upsertion("alice", "one", 3), ErrorCode.unsupported_sasl_mechanism),
        (upsertion("alice", "one", 0), ErrorCode.unsupported_sasl_mechanism),
    ],
)
def test_a_credential_that_cannot_be_kept_is_refused(
    change: ScramCredentialUpsertion, code: ErrorCode
) -> None:
    answers, records = alter(Cluster(), [change])
    assert answers == [(change.name, code)]
    assert records == ()


def test_a_user_that_is_not_there_cannot_be_removed() -> None:
    answers, records = alter(Cluster(), deletions=[deletion("alice")])
    assert answers == [("alice", ErrorCode.resource_not_found)]
    assert records == ()


def test_all_changes_of_a_user_are_made_or_none_and_others_go_on() -> None:
    changes = [upsertion("alice", "x"), upsertion("alice", "y"), upsertion("bob", "z")]
    answers, records = alter(Cluster(), changes)
    assert answers == [("alice", ErrorCode.duplicate_resource), ("bob", ErrorCode.none)]
    [record] = records
    assert isinstance(record, UserScramCredentialRecord)
    assert record.name == "bob"


def test_users_survive_a_snapshot_in_their_order() -> None:
    cluster = Cluster()
    for name in ("zoe", "adam"):
        alter(cluster, [upsertion(name, name)])
    image, codec = MetadataImage(), MetadataRecordCodec()
    for record in cluster.image.snapshot():
        image.replay(codec.decode(*codec.encode(record)))
    assert list(image.scram_credentials.items()) == list(cluster.image.scram_credentials.items())


def test_a_record_does_not_show_its_keys() -> None:
    _, [record] = alter(Cluster(), [upsertion("alice", "one")])
    assert "key" not in repr(record)
    assert "salt" not in repr(record)
