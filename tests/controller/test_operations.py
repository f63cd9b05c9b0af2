import functools
import typing

import pytest
from tests.controller.cluster import Cluster

from ottla.controller.operations import OPERATIONS, At


@pytest.mark.parametrize("api_key", OPERATIONS)
def test_an_operation_takes_the_request_of_its_api(api_key: int) -> None:
    method = OPERATIONS[api_key].method(Cluster().machine, At(0, 0))
    function = method.func if isinstance(method, functools.partial) else method
    request_type = typing.get_type_hints(function)["request"]
    assert request_type.__api_key__ == api_key
