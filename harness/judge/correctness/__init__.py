"""Decides whether a submission is right: draws inputs, computes expected outputs, and compares. Trusted."""
