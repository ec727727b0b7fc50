"""Publishes the record: as Markdown, as tables for programs, and as a site."""
