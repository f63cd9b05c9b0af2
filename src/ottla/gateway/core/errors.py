"""The gateway's own errors; refusals by brokers are in `client.wire.errors`.

Invalid    the request makes no sense
TooBusy    a limit is reached; the same request may succeed later
NotDelayed the topic's records cannot be delivered later
KeyReused  the Idempotency-Key was used for another request
"""


class CoreError(Exception):
    """The message says what is wrong and what to do."""


class Invalid(CoreError):
    pass


class TooBusy(CoreError):
    pass


class KeyReused(CoreError):
    pass


class NotDelayed(CoreError):
    pass
