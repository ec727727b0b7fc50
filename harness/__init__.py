"""Grades one submission against one problem; knows nothing of boards.

Two kinds of process live here. The *judge* is trusted: it makes the inputs, holds the clock, compares and decides.
The *runner* is not: it runs in a sandbox, imports the submission and calls it when told. Everything that the runner
says is a claim. This file stays empty of imports because the runner's sandbox holds it too.
"""
