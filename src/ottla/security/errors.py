"""Why somebody was not let in."""


class AuthenticationFailed(Exception):
    """The peer has not proved who it is.

    The message is for the log. A client hears the same words whatever was wrong, so that it cannot
    tell an unknown user from a wrong password.
    """
