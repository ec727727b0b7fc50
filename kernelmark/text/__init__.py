"""Formats results as plain text for terminals, and shows progress."""
