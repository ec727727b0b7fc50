"""What the server says over HTTP: its routes, what guards them, and how errors are written. Requests are hostile."""
