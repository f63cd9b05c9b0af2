"""The users of the metadata, as logins ask for them."""

from ottla.controller.image import MetadataImage
from ottla.security.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism, unknown_user


class ImageCredentials:
    """Implements `security.exchange.Credentials`.

    Somebody who does not exist is asked with a salt that does not change from one attempt to the
    next, nor from node to node: it comes from a secret that all nodes have, the keys of the first
    user. `fallback` is the secret while there is no user.
    """

    def __init__(self, image: MetadataImage, fallback: bytes) -> None:
        self._image = image
        self._fallback = fallback

    def scram(self, mechanism: ScramMechanism, username: str) -> ScramCredential:
        users = self._image.scram_credentials
        found = users.get((username, mechanism))
        if found is not None:
            return found
        first = next(iter(users.values()), None)
        if first is None:
            return unknown_user(mechanism, username, self._fallback, ITERATIONS_MIN)
        return unknown_user(mechanism, username, first.server_key, first.iterations)
