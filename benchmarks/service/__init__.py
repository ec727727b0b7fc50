"""Measures `kernelmark serve` under load, with workers that grade nothing: `python -m benchmarks.service`."""
