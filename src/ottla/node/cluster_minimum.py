"""Warns if this node's min.insync.replicas differs from the cluster's."""

import logging
from collections.abc import Mapping

from ottla.controller.config import MIN_INSYNC_REPLICAS
from ottla.controller.image import MetadataImage

logger = logging.getLogger(__name__)


def warn_of_other_minimum(configured: Mapping[str, object], image: MetadataImage) -> None:
    """Call after the controller had a chance to adopt the value."""
    key = MIN_INSYNC_REPLICAS
    if key.name not in configured:
        return
    own = str(configured[key.name])
    cluster = image.default_broker_configs().get(key.name, str(key.default))
    if own != cluster:
        logger.warning(
            "%s=%s of this node's configuration is ignored, the cluster uses %s; "
            "`ottla configs alter --all-brokers --set %s=%s` changes it for all nodes",
            key.name,
            own,
            cluster,
            key.name,
            own,
        )
