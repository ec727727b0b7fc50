"""The queue: what is admitted, in which order it is graded, and who grades it until when."""
