"""What is written from the record for others: Markdown, tables for programs, and the site."""
