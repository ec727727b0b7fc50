"""Programs that measure kernelmark. Each is run by `python -m benchmarks.NAME`; their results are in `results/`."""
