import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from tests.protocol.entities import encode, entities, versions

from ottla.protocol.writer import write_entity


@pytest.mark.parametrize("key", api_key_map)
@settings(max_examples=5)
@given(data=st.data())
def test_writes_what_kio_writes(key: int, data: st.DataObject) -> None:
    for version in versions(key):
        for load in (load_request_schema, load_response_schema):
            entity = data.draw(entities(load(key, version)))
            out = bytearray(b"before")
            write_entity(out, entity)
            assert out == b"before" + encode(entity)
