"""Records, ranks and publishes verdicts. It does not depend on sandboxes, problems or torch.

`record` stores verdicts and sources, `standings` ranks them, and `publishing` writes the board, the export and the
site. `kernelmark` calls all three. Trusted code; the file names in a verdict are not trusted.
"""
