"""What to do when records were deleted before they were read: fail, or report it and continue."""

import logging

logger = logging.getLogger("pyspark_ottla")


class DataLoss(Exception):
    """Records that should have been read are gone."""


def report_loss(message: str, *, fail: bool) -> None:
    if fail:
        raise DataLoss(f"{message} (failOnDataLoss=false continues without them)")
    logger.warning("data loss: %s", message)
