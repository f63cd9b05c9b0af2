from typing import cast

import pytest
from kio.schema.alter_client_quotas.v1.request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kio.static.primitive import f64
from tests.controller.cluster import Cluster, answered

from ottla.controller.image import MetadataImage
from ottla.controller.record_codec import MetadataRecordCodec
from ottla.protocol.errors import ErrorCode
from ottla.security.quotas import CLIENT_ID, IP, USER, entity_of

Parts = tuple[tuple[str, str | None], ...]
ANN: Parts = ((USER, "ann"),)


def entry(parts: Parts, **bounds: float | None) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in parts),
        ops=tuple(
            OpData(key=key, value=cast("f64", float(bound or 0)), remove=bound is None)
            for key, bound in bounds.items()
        ),
    )


def alter(cluster: Cluster, *entries: EntryData, validate_only: bool = False) -> list[ErrorCode]:
    request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
    result = cluster.machine.quotas.alter_client_quotas(request)
    cluster.apply(result)
    return [entry_data.error_code for entry_data in answered(result).entries]


def test_a_quota_is_set_changed_and_removed() -> None:
    cluster = Cluster()
    assert alter(cluster, entry(ANN, producer_byte_rate=10, consumer_byte_rate=20)) == [0]
    alter(cluster, entry(ANN, producer_byte_rate=11))
    quotas = cluster.image.client_quotas
    assert quotas == {ANN: {"producer_byte_rate": 11, "consumer_byte_rate": 20}}
    alter(cluster, entry(ANN, producer_byte_rate=None, consumer_byte_rate=None))
    assert quotas == {}


def test_what_is_only_validated_or_already_so_writes_nothing() -> None:
    cluster = Cluster()
    alter(cluster, entry(ANN, producer_byte_rate=10), validate_only=True)
    assert cluster.image.client_quotas == {}
    alter(cluster, entry(ANN, producer_byte_rate=10))
    request = AlterClientQuotasRequest(
        entries=(entry(ANN, producer_byte_rate=10, request_percentage=None),), validate_only=False
    )
    assert cluster.machine.quotas.alter_client_quotas(request).records == ()


def test_the_order_of_the_types_makes_no_difference() -> None:
    cluster = Cluster()
    both: Parts = ((USER, "ann"), (CLIENT_ID, None))
    alter(cluster, entry(both, producer_byte_rate=10))
    alter(cluster, entry(both[::-1], producer_byte_rate=11))
    assert cluster.image.client_quotas == {entity_of(both): {"producer_byte_rate": 11}}


@pytest.mark.parametrize(
    "wrong",
    [
        entry((), producer_byte_rate=10),
        entry((("group", "g"),), producer_byte_rate=10),
        entry(((USER, "ann"), (USER, "bob")), producer_byte_rate=10),
        entry(((USER, ""),), producer_byte_rate=10),
        entry(((IP, "10.0.0.1"), (USER, "ann")), connection_creation_rate=10),
        entry(((IP, "not an address"),), connection_creation_rate=10),
        entry(((IP, "10.0.0.1"),), producer_byte_rate=10),
        entry(ANN, connection_creation_rate=10),
        entry(ANN, producer_byte_rate=0),
        entry(ANN, producer_byte_rate=-1),
        entry(ANN, producer_byte_rate=1.5),
        entry(ANN, request_percentage=float("nan")),
        entry(ANN, request_percentage=float("inf")),
        entry(ANN, no_such_quota=10),
    ],
    ids=lambda changed: f"{changed.entity}{[(op.key, op.value) for op in changed.ops]}"[:60],
)
def test_nonsense_is_refused_and_the_rest_is_done(wrong: EntryData) -> None:
    cluster = Cluster()
    answers = alter(cluster, wrong, entry(((USER, "bob"),), request_percentage=1.5))
    assert answers == [ErrorCode.invalid_request, ErrorCode.none]
    assert cluster.image.client_quotas == {((USER, "bob"),): {"request_percentage": 1.5}}


def test_an_entity_that_comes_twice_is_refused() -> None:
    cluster = Cluster()
    answers = alter(cluster, entry(ANN, request_percentage=1), entry(ANN, request_percentage=2))
    assert answers == [ErrorCode.invalid_request] * 2
    assert cluster.image.client_quotas == {}


def test_quotas_are_in_snapshots() -> None:
    cluster = Cluster()
    alter(cluster, entry(((USER, None), (CLIENT_ID, "app")), producer_byte_rate=10))
    alter(cluster, entry(((IP, "::1"),), connection_creation_rate=3))
    codec, image = MetadataRecordCodec(), MetadataImage()
    for record in cluster.image.snapshot():
        image.replay(codec.decode(*codec.encode(record)))
    assert image.client_quotas == cluster.image.client_quotas
