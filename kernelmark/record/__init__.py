"""The project's record: reads and appends verdicts, publishes boards, and applies daily limits and deadlines."""
