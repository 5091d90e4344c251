"""The command line: the commands, what they read, and the options that they share."""
