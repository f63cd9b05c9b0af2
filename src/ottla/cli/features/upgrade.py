"""`ottla features upgrade`: let the cluster use what all its nodes know."""

from typing import Annotated, Final

from cyclopts import Parameter
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16

from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.features.list import feature_rows
from ottla.cli.output import print_line

_UPGRADE: Final = i8(1)


def upgrade(
    feature: Annotated[str | None, Parameter(name="feature")] = None,
    /,
    *,
    level: int | None = None,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Raise features to the highest level, once every node runs the new release.

    Args:
        feature: Name of a feature; without one, all of them.
        level: The level to raise it to; by default the highest that the broker knows.
    """
    with bootstrap_broker(connection) as broker:
        rows = feature_rows(broker)
        if feature is not None and feature not in {row["feature"] for row in rows}:
            raise CommandError(
                f"there is no feature {feature}; `ottla features list` shows the features"
            )
        wanted = {}
        for row in rows:
            to = row["highest"] if level is None else level
            if feature in (None, row["feature"]) and to != row["level"]:
                wanted[row["feature"]] = to
        if wanted:
            request = UpdateFeaturesRequest(
                feature_updates=tuple(
                    FeatureUpdateKey(feature=name, max_version_level=i16(to), upgrade_type=_UPGRADE)
                    for name, to in wanted.items()
                ),
            )
            response = broker.call(request)
            check(response.error_code, "features", response.error_message)
    for name, to in wanted.items():
        print_line(f"{name} has level {to}")
    if not wanted:
        print_line("there is nothing to upgrade")
