"""Where PEERS_TURN names a file, a process that runs this has the GPU to itself until it ends; others wait here."""
# ruff: noqa: SIM115, PTH123 - it stays open

import fcntl
import os
import sys

if "PEERS_TURN" in os.environ and not hasattr(sys, "peers_turn"):
    sys.peers_turn = open(os.environ["PEERS_TURN"])
    fcntl.flock(sys.peers_turn, fcntl.LOCK_EX)
