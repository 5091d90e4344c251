"""Graphs as source code in other languages: the system and its derivatives as functions, a file a language."""
