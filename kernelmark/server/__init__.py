"""The service: takes submissions over the network, queues them, gives them to workers, and records what they answer.

One process serves one project. It has no torch, no GPU and no private tests, and never runs, imports or parses a
submission.
"""
