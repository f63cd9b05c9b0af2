"""Handles keep their contents, and forged ones are refused."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.gateway.core.handles import SECRET_BYTES, Handle, InvalidHandle, Signer, pack_queue

SIGNER = Signer([b"a" * SECRET_BYTES])
NOW_S = 1_700_000_000.0

names = st.text(min_size=1, max_size=40)
handles = st.builds(
    Handle,
    topic=names,
    topic_id=st.uuids(),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    group=names,
    delivery_count=st.integers(1, 2**15 - 1),
    member_id=names,
    expires_s=st.integers(int(NOW_S), 2**32 - 1),
)


def example(expires_s: int = int(NOW_S)) -> Handle:
    return Handle("orders", UUID(int=7), 3, 42, "billing", 1, "member", expires_s)


def seal(signer: Signer, handle: Handle) -> str:
    topic, topic_id, partition, offset, group, count, member_id, expires_s = handle
    queue = pack_queue(topic, topic_id, group, member_id)
    return signer.seal_delivery(queue, partition, offset, count, expires_s)


@given(handles)
def test_a_sealed_handle_opens_to_itself(handle: Handle) -> None:
    sealed = seal(SIGNER, handle)
    assert SIGNER.open(sealed, NOW_S) == handle
    assert sealed.replace("-", "").replace("_", "").isalnum()


@given(st.text(max_size=300))
def test_text_that_nobody_sealed_is_refused(text: str) -> None:
    with pytest.raises(InvalidHandle):
        SIGNER.open(text, NOW_S)


def test_a_changed_handle_is_refused() -> None:
    sealed = seal(SIGNER, example())
    for index in range(len(sealed) - 1):  # The last character has unused bits.
        changed = sealed[:index] + ("B" if sealed[index] == "A" else "A") + sealed[index + 1 :]
        with pytest.raises(InvalidHandle):
            SIGNER.open(changed, NOW_S)


def test_the_handle_of_another_cluster_is_refused() -> None:
    with pytest.raises(InvalidHandle):
        Signer([b"b" * SECRET_BYTES]).open(seal(SIGNER, example()), NOW_S)


def test_every_secret_opens_and_the_first_seals() -> None:
    both = Signer([b"b" * SECRET_BYTES, b"a" * SECRET_BYTES])
    assert both.open(seal(SIGNER, example()), NOW_S) == example()
    assert Signer([b"b" * SECRET_BYTES]).open(seal(both, example()), NOW_S) == example()


def test_a_handle_that_no_lock_can_belong_to_is_refused() -> None:
    with pytest.raises(InvalidHandle, match="too old"):
        SIGNER.open(seal(SIGNER, example(int(NOW_S) - 1)), NOW_S)


def test_the_longest_names_of_kafka_fit() -> None:
    handle = example()._replace(topic="t" * 249, group="g" * 255, member_id="m" * 255)
    assert SIGNER.open(seal(SIGNER, handle), NOW_S) == handle
