"""Whether a submission is right: draws and lays out inputs, computes expected outputs, compares answers. Trusted."""
