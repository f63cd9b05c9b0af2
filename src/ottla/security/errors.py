"""Authentication errors."""


class AuthenticationFailed(Exception):
    """The peer has not proved its identity.

    The message is for the log. A client always gets the same text, whatever was wrong, so that it
    cannot tell an unknown user from a wrong password.
    """
