"""The services behind the commands and the Python API; nothing here prints or ends the process."""
