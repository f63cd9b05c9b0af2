"""The event name of a log line: the words of its text, without the variable parts.

So every line of code that logs has a name that says what happened, without anyone choosing one. It
changes with the text. A line whose text is composed elsewhere names its event with
`extra={"template": ...}`.
"""

import logging
import re
from typing import Final

_VARYING: Final = re.compile(r"%[-+ #0]*[\d.]*[a-zA-Z%]|'\w\b")
_WORD: Final = re.compile(r"[a-z0-9]+")
_WORDS_MAX: Final = 8


def event_of(template: str) -> str:
    words = _WORD.findall(_VARYING.sub(" ", template).lower())
    return "-".join(words[:_WORDS_MAX])


def event_of_record(record: logging.LogRecord) -> str:
    return event_of(str(getattr(record, "template", record.msg)))
