"""A submission under NVIDIA's tools, which watch its kernels: sanitizers and the profiler. Trusted."""
