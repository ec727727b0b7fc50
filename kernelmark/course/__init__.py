"""Many submissions to one problem: whose they are, when they came, and the marks they get."""
