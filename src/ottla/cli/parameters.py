"""Parameters that several commands share."""

from typing import Annotated

from cyclopts import Parameter

from ottla.cli.errors import UsageError

Flag = Annotated[bool, Parameter(show_default=False)]
AsJson = Annotated[
    bool, Parameter(name="--json", show_default=False, help="Print JSON, for use in scripts.")
]
TopicNames = Annotated[list[str], Parameter(name="topic", help="Names of topics.")]
Step = Annotated[int, Parameter(help="How many partitions to move at the same time.")]
Throttle = Annotated[
    str | None,
    Parameter(help="Maximum bytes per second for each node, such as 10MB."),
]


def validate_positive(option: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise UsageError(f"{option} {number} is less than 1")


def validate_port(option: str, port: int | None) -> None:
    if port is not None and not 0 <= port < 1 << 16:
        raise UsageError(f"{option} {port} is not from 0 to 65535")
