"""The project around the working directory: its settings, its problems, what it may use of this machine."""
