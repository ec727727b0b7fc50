"""What the commands and the Python API are made of; nothing here prints or ends the process."""
