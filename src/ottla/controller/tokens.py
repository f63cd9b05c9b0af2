"""CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken (KIP-48, 373)."""

import base64
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, cast
from uuid import UUID

from kio.schema.create_delegation_token.v3.request import CreateDelegationTokenRequest
from kio.schema.create_delegation_token.v3.response import CreateDelegationTokenResponse
from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.expire_delegation_token.v2.response import ExpireDelegationTokenResponse
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.response import RenewDelegationTokenResponse
from kio.static.primitive import TZAware

from ottla.controller.image import MetadataImage, token_record
from ottla.controller.records import RemoveDelegationTokenRecord
from ottla.controller.token_config import (
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS,
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_SECRET_KEY,
)
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE, in_milliseconds
from ottla.security.delegation_tokens import DelegationToken, TokenSecret
from ottla.security.principal import ANONYMOUS, USER, Principal

NO_TIME_MS: Final = 0
RENEWERS_MAX: Final = 1_000
_TIMER: Final = "expired delegation tokens"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class TokenControl:
    def __init__(
        self,
        image: MetadataImage,
        static: ConfigValues,
        new_id: Callable[[], UUID],
        timers: Timers,
    ) -> None:
        secret = static[DELEGATION_TOKEN_SECRET_KEY]
        self._image = image
        self._secret = TokenSecret(secret) if secret else None
        self._max_lifetime_ms = static[DELEGATION_TOKEN_MAX_LIFETIME_MS]
        self._expiry_ms = static[DELEGATION_TOKEN_EXPIRY_TIME_MS]
        self._check_ms = static[DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS]
        self._new_id = new_id
        self._timers = timers
        self._ids: dict[bytes, str] = {}  # By their HMAC.

    def on_loaded(self, now_ms: int) -> None:
        self._timers.schedule(_TIMER, now_ms + self._check_ms, self._remove_expired)

    def _remove_expired(self, now_ms: int) -> Result[None]:
        self._timers.schedule(_TIMER, now_ms + self._check_ms, self._remove_expired)
        records = tuple(
            RemoveDelegationTokenRecord(token_id=token.token_id)
            for token in self._image.delegation_tokens.values()
            if token.is_expired(now_ms)
        )
        return Result(None, records, cause="delegation tokens have expired")

    def create_delegation_token(
        self, request: CreateDelegationTokenRequest, *, caller: Principal, now_ms: int
    ) -> Result[CreateDelegationTokenResponse]:
        secret = self._enabled()
        if caller == ANONYMOUS:
            raise ApiError(ErrorCode.delegation_token_request_not_allowed, "nobody has no tokens")
        owner = token_owner(request, caller)
        renewers = tuple(
            Principal(renewer.principal_type, renewer.principal_name)
            for renewer in request.renewers
        )
        if any(renewer.type != USER for renewer in renewers):
            raise ApiError(ErrorCode.invalid_principal_type, "only users can renew tokens")
        if len(renewers) > RENEWERS_MAX:
            raise ApiError(
                ErrorCode.invalid_request, f"a token has at most {RENEWERS_MAX} renewers"
            )
        lifetime_ms = self._max_lifetime_ms
        wanted_ms = in_milliseconds(request.max_lifetime)
        if wanted_ms > 0:
            lifetime_ms = min(lifetime_ms, wanted_ms)
        token = DelegationToken(
            base64.urlsafe_b64encode(self._new_id().bytes).decode().rstrip("="),
            owner,
            caller,
            renewers,
            issued_ms=now_ms,
            max_ms=now_ms + lifetime_ms,
            expires_ms=min(now_ms + lifetime_ms, now_ms + self._expiry_ms),
        )
        response = created_response(ErrorCode.none, caller, token, secret.hmac(token.token_id))
        return Result(response, (token_record(token),), cause="a delegation token was created")

    def renew_delegation_token(
        self, request: RenewDelegationTokenRequest, *, caller: Principal, now_ms: int
    ) -> Result[RenewDelegationTokenResponse]:
        token = self._find(bytes(request.hmac))
        _validate_not_expired(token, now_ms)
        _validate_managed(token, caller)
        wanted_ms = in_milliseconds(request.renew_period)
        period_ms = min(self._expiry_ms, wanted_ms) if wanted_ms > 0 else self._expiry_ms
        renewed = replace(token, expires_ms=min(token.max_ms, now_ms + period_ms))
        response = RenewDelegationTokenResponse(
            error_code=ErrorCode.none,
            expiry_timestamp=timestamp(renewed.expires_ms),
            throttle_time=NO_THROTTLE,
        )
        return Result(response, (token_record(renewed),), cause="a delegation token was renewed")

    def expire_delegation_token(
        self, request: ExpireDelegationTokenRequest, *, caller: Principal, now_ms: int
    ) -> Result[ExpireDelegationTokenResponse]:
        token = self._find(bytes(request.hmac))
        _validate_managed(token, caller)
        period_ms = in_milliseconds(request.expiry_time_period)
        record: object
        if period_ms < 0:
            expires_ms = now_ms
            record = RemoveDelegationTokenRecord(token_id=token.token_id)
        else:
            _validate_not_expired(token, now_ms)
            expires_ms = min(token.max_ms, now_ms + period_ms)
            record = token_record(replace(token, expires_ms=expires_ms))
        response = ExpireDelegationTokenResponse(
            error_code=ErrorCode.none,
            expiry_timestamp=timestamp(expires_ms),
            throttle_time=NO_THROTTLE,
        )
        return Result(response, (record,), cause="a delegation token was expired")

    def _enabled(self) -> TokenSecret:
        if self._secret is None:
            raise ApiError(
                ErrorCode.delegation_token_auth_disabled,
                "Delegation tokens are off. Set delegation.token.secret.key on every node.",
            )
        return self._secret

    def _find(self, hmac: bytes) -> DelegationToken:
        secret, tokens = self._enabled(), self._image.delegation_tokens
        token_id = self._ids.get(hmac)
        if token_id not in tokens:
            self._ids = {secret.hmac(token_id): token_id for token_id in tokens}
            token_id = self._ids.get(hmac)
        token = None if token_id is None else tokens.get(token_id)
        if token is None:
            raise ApiError(ErrorCode.delegation_token_not_found, "there is no such token")
        return token


def token_owner(request: CreateDelegationTokenRequest, caller: Principal) -> Principal:
    """A user may request a token for another user (KIP-373)."""
    if not request.owner_principal_name:
        return caller
    return Principal(request.owner_principal_type or USER, request.owner_principal_name)


def _validate_managed(token: DelegationToken, caller: Principal) -> None:
    if not token.is_managed_by(caller):
        raise ApiError(
            ErrorCode.delegation_token_owner_mismatch,
            f"{caller} is neither the owner nor a renewer of the token",
        )


def _validate_not_expired(token: DelegationToken, now_ms: int) -> None:
    if token.is_expired(now_ms):
        raise ApiError(ErrorCode.delegation_token_expired, "the token has expired")


def timestamp(time_ms: int) -> TZAware:
    return cast("TZAware", _EPOCH + timedelta(milliseconds=time_ms))


def created_response(
    code: ErrorCode,
    requester: Principal = ANONYMOUS,
    token: DelegationToken | None = None,
    hmac: bytes = b"",
) -> CreateDelegationTokenResponse:
    owner = requester if token is None else token.owner
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=timestamp(NO_TIME_MS if token is None else token.issued_ms),
        expiry_timestamp=timestamp(NO_TIME_MS if token is None else token.expires_ms),
        max_timestamp=timestamp(NO_TIME_MS if token is None else token.max_ms),
        token_id="" if token is None else token.token_id,
        hmac=hmac,
        throttle_time=NO_THROTTLE,
    )
