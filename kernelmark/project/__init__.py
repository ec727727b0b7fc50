"""A project: its settings, its problems, what it may use of this machine."""
