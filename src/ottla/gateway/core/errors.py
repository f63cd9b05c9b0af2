"""What goes wrong in the gateway itself; what brokers say no to is in `client.wire.errors`.

Invalid    what was asked for makes no sense
TooBusy    a bound is reached; the same may be asked again later
NotDelayed a topic whose records cannot be delivered later
KeyReused  an Idempotency-Key that came with another request before
"""


class CoreError(Exception):
    """The message says what and what to do."""


class Invalid(CoreError):
    pass


class TooBusy(CoreError):
    pass


class KeyReused(CoreError):
    pass


class NotDelayed(CoreError):
    pass
