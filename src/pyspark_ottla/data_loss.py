"""What to do when records are gone before they were read: stop, or say so and go on."""

import logging

logger = logging.getLogger("pyspark_ottla")


class DataLoss(Exception):
    """Records that should have been read are not there any more."""


def report_loss(message: str, *, fail: bool) -> None:
    if fail:
        raise DataLoss(f"{message} (failOnDataLoss=false goes on without them)")
    logger.warning("data loss: %s", message)
