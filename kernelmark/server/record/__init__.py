"""Takes workers' answers, and brings them into the ledger. Trusted, over documents that a worker may have forged."""
