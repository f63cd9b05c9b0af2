"""AlterUserScramCredentials (KIP-554): user passwords, as SCRAM credentials."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.alter_user_scram_credentials.v0.response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kio.static.primitive import i8

from ottla.controller.image import MetadataImage, scram_record
from ottla.controller.records import RemoveUserScramCredentialRecord
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    credential_of,
    digest,
)

USERNAME_CHARACTERS_MAX: Final = 255
SALT_BYTES_MAX: Final = 1_024
_TIMER: Final = "initial users"

Change = ScramCredentialDeletion | ScramCredentialUpsertion


class UserControl:
    def __init__(
        self,
        image: MetadataImage,
        initial: Mapping[tuple[str, int], ScramCredential],
        timers: Timers,
    ) -> None:
        """`initial` are the users for a cluster that has none: someone must create the first."""
        self._image = image
        self._initial = initial
        self._timers = timers

    def on_loaded(self, now_ms: int) -> None:
        self._timers.schedule(_TIMER, now_ms, self._maybe_begin)

    def _maybe_begin(self, _now_ms: int) -> Result[None]:
        if self._image.scram_credentials:
            return Result(None)
        records = tuple(
            scram_record(name, ScramMechanism(mechanism), credential)
            for (name, mechanism), credential in self._initial.items()
        )
        return Result(None, records, cause="the cluster had no users")

    def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> Result[AlterUserScramCredentialsResponse]:
        """The changes of one user are all or nothing."""
        changes: dict[str, list[Change]] = {}
        altered: tuple[Change, ...] = (*request.deletions, *request.upsertions)
        for change in altered:
            changes.setdefault(change.name, []).append(change)
        records: list[object] = []
        results = []
        for user, of_user in changes.items():
            try:
                records += self._records(user, of_user)
            except ApiError as error:
                results.append(result(user, error))
            else:
                results.append(result(user))
        response = AlterUserScramCredentialsResponse(
            throttle_time=NO_THROTTLE, results=tuple(results)
        )
        return Result(response, tuple(records), cause="users were changed")

    def _records(self, user: str, changes: list[Change]) -> list[object]:
        _validate_name(user)
        mechanisms = Counter(int(change.mechanism) for change in changes)
        if max(mechanisms.values()) > 1:
            raise ApiError(
                ErrorCode.duplicate_resource,
                "a user credential cannot be altered twice in the same request",
            )
        return [self._record(change) for change in changes]

    def _record(self, change: Change) -> object:
        mechanism = _mechanism(change.mechanism)
        if isinstance(change, ScramCredentialDeletion):
            if (change.name, mechanism) not in self._image.scram_credentials:
                raise ApiError(
                    ErrorCode.resource_not_found,
                    f"{change.name!r} has no credential of {mechanism.sasl_name}",
                )
            return RemoveUserScramCredentialRecord(name=change.name, mechanism=i8(mechanism))
        _validate_credential(mechanism, change)
        credential = credential_of(
            mechanism, change.salted_password, change.salt, int(change.iterations)
        )
        return scram_record(change.name, mechanism, credential)


def result(user: str, error: ApiError | None = None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=user,
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
    )


def _validate_name(user: str) -> None:
    if not user or "\0" in user:
        raise ApiError(ErrorCode.unacceptable_credential, "a username must not be empty")
    if len(user) > USERNAME_CHARACTERS_MAX:
        raise ApiError(
            ErrorCode.unacceptable_credential,
            f"a username has at most {USERNAME_CHARACTERS_MAX} characters",
        )


def _mechanism(number: int) -> ScramMechanism:
    try:
        return ScramMechanism(number)
    except ValueError:
        raise ApiError(
            ErrorCode.unsupported_sasl_mechanism, f"there is no SCRAM mechanism {number}"
        ) from None


def _validate_credential(mechanism: ScramMechanism, change: ScramCredentialUpsertion) -> None:
    if change.iterations < ITERATIONS_MIN:
        raise ApiError(
            ErrorCode.unacceptable_credential, f"too few iterations, fewer than {ITERATIONS_MIN}"
        )
    if change.iterations > ITERATIONS_MAX:
        raise ApiError(
            ErrorCode.unacceptable_credential, f"too many iterations, more than {ITERATIONS_MAX}"
        )
    if not 0 < len(change.salt) <= SALT_BYTES_MAX:
        raise ApiError(
            ErrorCode.unacceptable_credential, f"a salt has from 1 to {SALT_BYTES_MAX} bytes"
        )
    if len(change.salted_password) != len(digest(mechanism, b"")):
        raise ApiError(ErrorCode.unacceptable_credential, "the salted password has a wrong size")
