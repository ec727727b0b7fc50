"""The command line: each command reads its options, calls a service and prints the result."""
