"""The results of commands as plain data, computed from a graph, points and cotangents."""
