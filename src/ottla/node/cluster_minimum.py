"""Says when this node's configuration has another min.insync.replicas than its cluster goes by."""

import logging
from collections.abc import Mapping

from ottla.controller.config import MIN_INSYNC_REPLICAS
from ottla.controller.image import MetadataImage

logger = logging.getLogger(__name__)


def warn_of_other_minimum(configured: Mapping[str, object], image: MetadataImage) -> None:
    """After the controller has had its chance to take the value up."""
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
