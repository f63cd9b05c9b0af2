"""`ottla features list`: the levels that the cluster has, and could have."""

from typing import Any, Final

from kio.schema.api_versions.v4.request import ApiVersionsRequest

from ottla.cli.broker_call import BrokerCall, bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson

COLUMNS: Final = ("feature", "level", "lowest", "highest")
_VERSION: Final = 4  # Later ones name the broker that is meant.


def list_features(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> None:
    """List the features of the cluster, and the levels that this broker knows."""
    with bootstrap_broker(connection) as broker:
        rows = feature_rows(broker)
    print_listing(COLUMNS, rows, as_json=as_json)


def feature_rows(broker: BrokerCall) -> list[dict[str, Any]]:
    """A feature without a level is off."""
    request = ApiVersionsRequest(client_software_name="ottla-cli", client_software_version="1")
    response = broker.call(request, _VERSION)
    check(response.error_code, "features")
    levels = {
        feature.name: int(feature.max_version_level) for feature in response.finalized_features
    }
    return [
        {
            "feature": feature.name,
            "level": levels.get(feature.name, 0),
            "lowest": int(feature.min_version),
            "highest": int(feature.max_version),
        }
        for feature in sorted(response.supported_features, key=lambda feature: feature.name)
    ]
