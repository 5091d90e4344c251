"""Results → text: steps as plain data, one file a renderer."""
