"""Other projects' evaluators beside this one: how long they take, how right they are, what they believe."""
