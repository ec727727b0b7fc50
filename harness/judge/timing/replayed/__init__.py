"""Timing in a launcher: recorded calls, made one at a time where no host code of the submission is. Trusted."""
