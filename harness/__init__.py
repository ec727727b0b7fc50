"""Grades one submission against one problem; knows nothing about boards.

Two kinds of process live here. The *judge* is trusted: it makes the inputs, holds the clock, compares and decides.
The *runner* is not: it runs in a sandbox, imports the submission and calls it on command. Everything that the runner
reports is a claim. This file imports nothing because the runner's sandbox contains it too.
"""
