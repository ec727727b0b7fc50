"""Times plain calls by the judge's clock: on CPUs, and on a GPU where calls are not replayed. Trusted."""
