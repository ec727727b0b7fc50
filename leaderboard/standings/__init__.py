"""What the record comes to: ranks, pooled results, what is out of date and what may be shown. Pure."""
