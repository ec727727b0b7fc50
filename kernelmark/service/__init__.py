"""What the server, its workers and its clients say to each other: documents and refusals, and nothing that acts.

All three import it; it imports none of them. Without torch, and without a library of the server.
"""
