"""Timing in the runner that holds the submission: rounds of many calls, between two readings of our clock. Trusted."""
