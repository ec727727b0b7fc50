"""How long a submission takes: by replayed calls if a launcher can make them, else by plain calls. Trusted."""


class NotReplayed(Exception):
    """A launcher cannot make the calls of this submission, through no fault of its own; plain calls time it."""


class NoMemoryToReplay(NotReplayed):
    """The device had too little free memory: other gradings may have it now."""
