"""Lets a Spark Connect client run a command in which Python workers take part.

Such workers send interim reports, and the client takes the first of them for an error, although the
command goes on and succeeds: `spark-pipelines run` exits with 1 after a successful run.

For     Spark 4.1 to 4.3; 4.0 has no pipelines.
Until   the client understands those reports, or leaves them out.
"""

from collections.abc import Iterator
from typing import Any


def drop_interim_answers(client: Any) -> None:
    """For the commands of this client from now on."""
    client.execute_command_as_iterator = lambda command: _answers(client, command)


def _answers(client: Any, command: Any) -> Iterator[dict[str, Any]]:
    request = client._execute_plan_request_with_metadata()
    client._set_command_in_plan(request.plan, command)
    for response in client._execute_and_fetch_as_iterator(request, {}):
        if isinstance(response, dict):
            yield response
