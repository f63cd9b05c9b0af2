"""One logger's messages: brokers and clients of other tests log in their own threads."""

import pytest


def messages_of(logger_name: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == logger_name]
