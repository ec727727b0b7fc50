"""What helps to write problems and submissions: lint, samples, skeletons, first files, a debugger's view."""
