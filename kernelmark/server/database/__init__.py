"""The server's own state: accounts, queue and leases. The record is the ledger; this is not."""
