"""Talks to a server: signs in, submits, follows. It needs no torch, and runs on Linux, macOS and Windows."""
