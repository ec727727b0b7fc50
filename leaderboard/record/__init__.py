"""The record of what was graded: ledgers of verdicts, the sources, and what organizers said of them."""
