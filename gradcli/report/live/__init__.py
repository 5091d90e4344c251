"""The live page: a system in HTML whose numbers can be changed, in one file."""
