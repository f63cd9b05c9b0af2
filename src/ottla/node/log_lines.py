"""Logging: one line per event, as text for people or as JSON for machines."""

import json
import logging
import sys
from datetime import UTC, datetime

from ottla.node.log_events import event_of_record
from ottla.node.serve_settings import LogFormat


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        component = record.name.removeprefix("ottla.")
        line = f"{_timestamp(record)} {record.levelname:<7} {component}: {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "component": record.name.removeprefix("ottla."),
            "event": event_of_record(record),
            "message": record.getMessage(),
        }
        audit = getattr(record, "audit", None)
        if audit is not None:
            event["audit"] = audit
        if isinstance(record.args, tuple) and record.args:
            event["arguments"] = [_plain(arg) for arg in record.args]
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def _plain(argument: object) -> object:
    return argument if isinstance(argument, int | float | str) else str(argument)


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def configure_logging(log_format: LogFormat, *others: str) -> None:
    """`others` are library loggers whose warnings matter."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format is LogFormat.JSON else TextLines())
    logger = logging.getLogger("ottla")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for name in others:
        logging.getLogger(name).handlers[:] = [handler]
        logging.getLogger(name).setLevel(logging.WARNING)
