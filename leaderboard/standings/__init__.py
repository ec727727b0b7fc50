"""Derives standings from the record: ranks, pooled results, staleness, and which sources may be shown. Pure."""
