"""Property tests have no deadline: the machine that runs them may be busy."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
