"""Spark's errors in one sentence, without the traces of two languages."""

import re

# What a Python process said last: `package.module.SomeError: what`.
_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*: (.+)$", re.MULTILINE)
_CHARACTERS_MAX = 600


def describe_error(error: BaseException) -> str:
    text = str(error)
    if "Traceback (most recent call last)" in text:
        said = _PYTHON_ERROR.search(text.rpartition("Traceback (most recent call last)")[2])
        if said:
            return said[1].strip()[:_CHARACTERS_MAX]
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())[:_CHARACTERS_MAX]
