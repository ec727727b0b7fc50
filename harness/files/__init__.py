"""Files that others made: how they are opened, and the hash that identifies what they hold."""
