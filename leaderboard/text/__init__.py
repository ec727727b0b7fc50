"""Times and untrusted text as people read them, wherever they are shown."""
