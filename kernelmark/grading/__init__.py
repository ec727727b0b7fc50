"""From a submission to its verdict: one here, or many in a fleet."""
