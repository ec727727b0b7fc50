"""Formats times and untrusted text for people."""
