import uuid

from ottla.gateway.dialects.sqs.ids import new_id


def test_ids_are_random_uuids_and_differ() -> None:
    ids = [new_id() for _ in range(1_000)]
    assert len(set(ids)) == len(ids)
    for text in ids:
        found = uuid.UUID(text)
        assert str(found) == text
        assert (found.version, found.variant) == (4, uuid.RFC_4122)
