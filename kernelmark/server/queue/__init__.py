"""The queue: admission, order, leases of workers, and limits."""
