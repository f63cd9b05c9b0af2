"""How a run fails, besides assertions in the code that is simulated."""


class Violation(AssertionError):
    """A promise was broken."""


class Stalled(AssertionError):
    """Nothing was broken, but the cluster did not go on when it could."""
