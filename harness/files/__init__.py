"""Opens files that others made, keeps caches, and computes the hashes that identify contents."""
