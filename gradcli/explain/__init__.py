"""What a command shows, as plain data: computed from a graph, points and cotangents."""
