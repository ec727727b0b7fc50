"""Times recorded calls, which a launcher replays one at a time, without the submission's host code. Trusted."""
