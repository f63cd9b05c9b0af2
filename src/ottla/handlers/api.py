"""What the dispatch table says about one API."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from ottla.controller.operations import INTERNAL_KEYS
from ottla.handlers.broker import Broker, RequestContext
from ottla.network.session import NOBODY, Overtakers, Session
from ottla.protocol.errors import ApiError
from ottla.protocol.frames import RequestHeader
from ottla.protocol.lazy_dataclass import dataclass

# Parses the frame and answers the session by itself; it names the overtakers with its reply.
HotHandler = Callable[[Broker, Session, RequestHeader, memoryview], None]

# What only brokers ask for; together with the fetches of followers and of the quorum's replicas.
BETWEEN_BROKERS: Final = INTERNAL_KEYS | {27, 52, 53, 54, 58, 59, 82, 83, 84, 85, 86, 87, 10_001}


# What brokers ask for of each other, and Kafka's brokers do not tell clients of.
UNTOLD: Final = frozenset({52, 53, 54, 56, 58, 59, 62, 63, 67, 73, 82})
INIT_PRODUCER_ID_KEY: Final = 22
TWO_PHASE_VERSION: Final = 6  # Of InitProducerId: it may ask for two-phase commit (KIP-939).

# A fetch of another broker is Kafka's Fetch, but counted apart from those of consumers.
FOLLOWER_FETCH_KEY: Final = -1
FOLLOWER_FETCH_NAME: Final = "FetchFollower"


class HandlerModule(Protocol):
    """What a module of this package has that serves a cold API."""

    def handle(self, broker: Broker, context: RequestContext, request: Any, /) -> object:
        """The newest request entity in, the newest response entity out, now or later."""

    def error_response(self, request: Any, error: ApiError, /) -> object:
        """The response that says that all of a request was refused."""


@dataclass(frozen=True, slots=True)
class ColdApi:
    key: int
    name: str
    low: int  # The lowest and the highest version that are served.
    high: int
    module: HandlerModule
    # What may be handled before this is answered, where it is not answered at once.
    overtakers: Overtakers = NOBODY


@dataclass(frozen=True, slots=True)
class HotApi:
    key: int
    name: str
    low: int
    high: int
    handle: HotHandler
    claimed_low: int  # What ApiVersions says; clients expect it of Produce.


Api = ColdApi | HotApi


def claimed_versions(table: Iterable[Api], *, two_phase: bool) -> dict[int, tuple[int, int]]:
    """What ApiVersions answers: the lowest and highest version by API key."""
    claimed = {
        api.key: (api.claimed_low if isinstance(api, HotApi) else api.low, api.high)
        for api in table
        if api.key not in UNTOLD
    }
    if not two_phase:
        claimed[INIT_PRODUCER_ID_KEY] = (claimed[INIT_PRODUCER_ID_KEY][0], TWO_PHASE_VERSION - 1)
    return claimed
