"""Times a submission: by replayed calls if a launcher can make them, otherwise by plain calls. Trusted."""


class NotReplayed(Exception):
    """A launcher cannot replay the calls of this submission, which is not an error; plain calls time it instead."""


class NoMemoryToReplay(NotReplayed):
    """The device has too little free memory, which other gradings may be using, or a launcher did not start."""
