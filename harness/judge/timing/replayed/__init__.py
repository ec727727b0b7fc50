"""Timing in a launcher: recorded calls, made one at a time, without the submission's host code. Trusted."""
