"""Many hand-ins of one problem: whose they are, when they came, and the marks they get."""
