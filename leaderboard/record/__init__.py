"""The record of gradings: ledgers of verdicts and moderation events, and the archived sources."""
