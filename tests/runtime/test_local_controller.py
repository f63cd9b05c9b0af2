from ottla.runtime.controller_client import ControllerClient
from ottla.runtime.local_controller import OPERATIONS


def test_there_is_an_operation_for_every_call_of_the_client() -> None:
    calls = [call for name, call in vars(ControllerClient).items() if not name.startswith("_")]
    assert {call.__annotations__["request"] for call in calls} == set(OPERATIONS)
