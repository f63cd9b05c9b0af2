"""Parameters that several commands share."""

from typing import Annotated

from cyclopts import Parameter

Flag = Annotated[bool, Parameter(show_default=False)]
AsJson = Annotated[
    bool, Parameter(name="--json", show_default=False, help="Print JSON, for use in scripts.")
]
TopicNames = Annotated[list[str], Parameter(name="topic", help="Names of topics.")]
