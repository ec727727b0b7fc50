"""Results as plain text for terminals, and progress while they are made."""
