"""A project: its settings, its problems, and the devices and sandboxes that it uses on this machine."""
