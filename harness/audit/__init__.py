"""A submission run to be looked at: under NVIDIA's tools, or for what its own process reports. Trusted."""
