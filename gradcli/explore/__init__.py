"""The explorer in the terminal: a system whose values are changed with the keys, and its page that follows."""
