"""Grades for a server: claims tasks, gives them to this machine's judges or to a fleet, and answers."""
