"""Pictures of a system in the formats that there are, a file a format."""
