"""A submission run to be looked at: under NVIDIA's sanitizers and profiler, or for what its process reports. Trusted."""
