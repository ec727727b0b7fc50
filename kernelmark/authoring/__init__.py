"""Tools for writing problems and submissions: lint, samples, skeletons, first files, debugging."""
