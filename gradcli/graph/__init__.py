"""The representation: nodes, graphs, the tables of operations, and what maps a graph to a graph."""
