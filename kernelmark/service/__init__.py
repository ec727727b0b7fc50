"""The protocol between the server, its workers and its clients: documents and refusals, without behaviour.

All three import it; it imports none of them, nor torch, nor any library of the server.
"""
