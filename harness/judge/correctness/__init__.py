"""Whether a submission is right: inputs drawn and laid out, expected outputs computed, answers compared. Trusted."""
