"""For whom a quota is, as options say it."""

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from ottla.cli.errors import UsageError
from ottla.cli.parameters import Flag
from ottla.security.quotas import CLIENT_ID, IP, USER, Entity, entity_of

_EVERYONE: Final = "(default)"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class EntityOptions:
    user: Annotated[str | None, Parameter(help="A user.")] = None
    client_id: Annotated[str | None, Parameter(help="A client id.")] = None
    ip: Annotated[str | None, Parameter(help="An IP address.")] = None
    default_user: Annotated[Flag, Parameter(help="The default for users without a quota.")] = False
    default_client_id: Annotated[
        Flag, Parameter(help="The default for client ids without a quota.")
    ] = False
    default_ip: Annotated[Flag, Parameter(help="The default for addresses without a quota.")] = (
        False
    )

    def entity(self, *, required: bool = True) -> Entity:
        names = {USER: self.user, CLIENT_ID: self.client_id, IP: self.ip}
        defaults = {
            USER: self.default_user,
            CLIENT_ID: self.default_client_id,
            IP: self.default_ip,
        }
        for kind, name in names.items():
            if name is not None and defaults[kind]:
                raise UsageError(f"--{kind} and --default-{kind} exclude each other")
        entity = entity_of(
            (kind, name) for kind, name in names.items() if name is not None or defaults[kind]
        )
        if required and not entity:
            raise UsageError("say whom the quota is for: --user, --client-id, --ip, or a default")
        return entity


NO_ENTITY: Final = EntityOptions()


def entity_text(entity: Entity) -> str:
    """The user first, as people say it."""
    order = (USER, CLIENT_ID, IP)
    parts = sorted(entity, key=lambda part: order.index(part[0]))
    return ", ".join(f"{kind} {_EVERYONE if name is None else name}" for kind, name in parts)
