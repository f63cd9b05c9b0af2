"""An entry of the dispatch table."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from ottla.controller.operations import INTERNAL_KEYS
from ottla.handlers import refusals
from ottla.handlers.broker import Broker, RequestContext
from ottla.network.session import NOBODY, Overtakers, Session
from ottla.protocol.errors import ApiError
from ottla.protocol.frames import RequestHeader
from ottla.protocol.lazy_dataclass import dataclass

# Parses the frame and answers the session itself; names the overtakers with its reply.
HotHandler = Callable[[Broker, Session, RequestHeader, memoryview], None]

# Requests only from brokers; in addition to the fetches of followers and quorum replicas.
BETWEEN_BROKERS: Final = INTERNAL_KEYS | {27, 52, 53, 54, 58, 59, 82, 83, 84, 85, 86, 87, 10_001}


# Requests only between brokers, which Kafka's brokers do not announce to clients.
UNLISTED: Final = frozenset({52, 53, 54, 56, 58, 59, 62, 63, 67, 73, 82})
INIT_PRODUCER_ID_KEY: Final = 22
TWO_PHASE_VERSION: Final = 6  # Of InitProducerId: allows two-phase commit (KIP-939).

# A fetch from another broker is Kafka's Fetch, but counted apart from those of consumers.
FOLLOWER_FETCH_KEY: Final = -1
FOLLOWER_FETCH_NAME: Final = "FetchFollower"


class HandlerModule(Protocol):
    """What a handler module of a cold API provides.

    If a top-level error does not say that a whole request is rejected, the module has an
    `error_response` of its own, with the parameters of the one in `refusals`.
    """

    def handle(self, broker: Broker, context: RequestContext, request: Any, /) -> object:
        """Takes the newest request entity and returns the newest response entity, now or later."""


@dataclass(frozen=True, slots=True)
class ColdApi:
    key: int
    name: str
    low: int  # The lowest and the highest supported version.
    high: int
    module: HandlerModule
    # Requests that may be handled before this one is answered, if it is not answered at once.
    overtakers: Overtakers = NOBODY

    def error_response(self, request: Any, error: ApiError) -> object:
        """The response if the whole request is rejected."""
        refuse = getattr(self.module, "error_response", refusals.error_response)
        return refuse(request, error)


@dataclass(frozen=True, slots=True)
class HotApi:
    key: int
    name: str
    low: int
    high: int
    handle: HotHandler
    claimed_low: int  # What ApiVersions announces; clients expect it for Produce.


Api = ColdApi | HotApi


def claimed_versions(table: Iterable[Api], *, two_phase: bool) -> dict[int, tuple[int, int]]:
    """The content of ApiVersions: the lowest and highest version by API key."""
    claimed = {
        api.key: (api.claimed_low if isinstance(api, HotApi) else api.low, api.high)
        for api in table
        if api.key not in UNLISTED
    }
    if not two_phase:
        claimed[INIT_PRODUCER_ID_KEY] = (claimed[INIT_PRODUCER_ID_KEY][0], TWO_PHASE_VERSION - 1)
    return claimed
