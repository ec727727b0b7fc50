"""The command line: each command reads its options, asks a service, and prints what it says."""
