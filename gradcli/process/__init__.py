"""The process and its system: signals, streams, limits, children, and the imports and exceptions of scripts."""
