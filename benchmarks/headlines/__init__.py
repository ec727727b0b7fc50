"""The claims of the lectures that this project was founded on, measured with it: `python -m benchmarks.headlines`."""
