"""Checks of a machine (doctor), profiles of kernels, audits, and the self-test of the defences."""
