"""The command line: one file a command, and the options they share."""
